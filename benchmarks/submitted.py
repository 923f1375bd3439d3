"""`snapshot` as a submitted job, in an environment that has nothing but Ray: each way of docs/install.md, beside a run that hangs.

    python benchmarks/submitted.py --home /big/disk [--env 2.60.0:3.11] [--way pip --way uv --way py_modules]

The environment is a folder below --home with ``ray[default]`` of that version, made once; the wheel is built anew. Each way is one
``ray job submit``: Ray installs what its runtime environment names, which is most of the time. Printed: a table; the exit code is 1 when a way did
not name the culprit.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from versions import Environment, StepError, build_wheel, make

WAYS = ("pip", "uv", "py_modules")
READY_S = 60.0
SUBMIT_S = 400.0
RING = """
import ray

@ray.remote(num_cpus=0, max_concurrency=2)
class Scorer:
    def meet(self, other): self.other = other
    def score(self): return ray.get(self.other.generate.remote())

@ray.remote(num_cpus=0)
class Engine:
    def meet(self, other): self.other = other
    def generate(self): return ray.get(self.other.score.remote())

ray.init(address="auto", log_to_driver=False)
scorer, engine = Scorer.remote(), Engine.remote()
ray.get([scorer.meet.remote(engine), engine.meet.remote(scorer)])
print("ready", flush=True)
ray.get(scorer.score.remote())
"""
CULPRITS = {"Scorer", "Engine"}


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [s.getsockname()[1] for s in sockets]


@contextlib.contextmanager
def hung_cluster(one: Environment, folder: Path) -> Iterator[str]:
    """A head of our own with its job server, and a ring of two actors; the address of the server. Stops all of it."""
    gcs, jobs = free_ports(2)
    env = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_ADDRESS": f"127.0.0.1:{gcs}"}
    env["PATH"] = f"{one.folder / 'bin'}:{os.environ.get('PATH', '')}"
    words = ("--head", "--node-ip-address", "127.0.0.1", "--num-cpus", "4", "--block", "--temp-dir", str(folder))
    where = (f"--port={gcs}", f"--dashboard-port={jobs}", "--include-dashboard=true")
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(Path(folder, "head.log").open("w"))
        started = [one.python, "-m", "ray.scripts.scripts", "start", *words, *where]
        head = subprocess.Popen(started, env=env, stdout=log, stderr=log, start_new_session=True)
        stack.callback(head.wait, 60)
        stack.callback(head.terminate)
        until = time.monotonic() + READY_S
        while not answers(jobs):
            if time.monotonic() > until or head.poll() is not None:
                raise StepError(f"Ray's head did not start in {READY_S:.0f} s")
            time.sleep(0.2)
        ring = subprocess.Popen([one.python, "-c", RING], env=env, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
        stack.callback(ring.wait, 60)
        stack.callback(ring.kill)
        assert ring.stdout is not None
        if ring.stdout.readline() != "ready\n":
            raise StepError("the program beside which we look did not start")
        yield f"http://127.0.0.1:{jobs}"


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def runtime_env(way: str, wheel: Path) -> dict[str, Any]:
    """As in docs/install.md."""
    if way == "py_modules":
        return {"py_modules": [str(wheel)], "pip": ["msgspec", "psutil", "nvidia-ml-py"]}
    return {way: [str(wheel)]}


def submit(one: Environment, server: str, way: str, wheel: Path) -> str:
    """Seconds, and whom the report names. Raises StepError."""
    began = time.monotonic()
    words = ("-m", "ray.scripts.scripts", "job", "submit", "--address", server, "--runtime-env-json", json.dumps(runtime_env(way, wheel)))
    said = one.run(*words, "--", "python", "-m", "ray_rl_debug", "snapshot", "--json", timeout_s=SUBMIT_S, codes=(0, 1)).stdout
    took_s = time.monotonic() - began
    try:
        report = next(json.loads(line) for line in reversed(said.splitlines()) if line.startswith('{"'))
    except (StopIteration, ValueError):
        raise StepError(f"no report: {said.strip().splitlines()[-1][:200] if said.strip() else 'nothing said'}") from None
    named = sorted({w["class"] for f in report["findings"] if f["root"] for w in f["who"] if w.get("class")})
    if report["verdict"]["state"] != "hang" or not CULPRITS & set(named):
        raise StepError(f"says {report['verdict']['state']} and names {', '.join(named) or 'nobody'}")
    return f"{took_s:.0f} s, {report['findings'][0]['id']} {' and '.join(named)}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--env", default="2.60.0:3.11", metavar="RAY:PYTHON")
    parser.add_argument("--way", action="append", choices=WAYS)
    given = parser.parse_args(arguments)
    home = given.home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    ray, _, version = given.env.partition(":")
    one = Environment(ray, version, home / f"bare-ray{ray}-py{version}")
    failed = False
    make(one)
    one.run("-m", "pip", "install", "-q", f"ray[default]=={one.ray}", timeout_s=1200)
    wheel = build_wheel(home)
    folder = Path(tempfile.mkdtemp(prefix="s-"))
    try:
        with hung_cluster(one, folder) as server:
            print(f"Ray {ray} on {version}\n\n| by | `snapshot` as a job |\n| --- | --- |", flush=True)
            for way in given.way or WAYS:
                try:
                    cell = submit(one, server, way, wheel)
                except StepError as e:
                    failed, cell = True, f"**fails**: {e}"
                print(f"| `{way}` | {cell} |", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
