"""What a thousand snapshots leave behind, and a thousand with a kill in the middle.

``python benchmarks/many_snapshots.py [COUNT] [--minutes 50] [--together 1]``

A driver makes steps with busy actors all the time, on a real Ray cluster of two local nodes. COUNT times (1,000) the real command takes a
snapshot of it; then COUNT times more, while one of our processes (the command, its Ray driver, an agent, a supervisor, py-spy) gets SIGKILL at a
random moment. ``--minutes`` bounds each half; ``--together`` lets so many people ask at the same time. To save the imports the commands run in
forks of processes that have them and no connection.

After each snapshot the job must be free within 2 s (no thread stopped or traced) and nothing that looks at it may be without its caller; our Ray
driver has the seconds that the command gives it. Every 50 snapshots Ray must have removed the rest, by its own tables: no actor, job, queued
request or package of ours, no worker, and no file or folder beyond what ten snapshots left and Ray's own logs; at the end no more descriptors.
Anything left is printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from faults.processes import MARK, marked, troubles

SNAPSHOT = ("snapshot", "--samples", "2", "--interval", "0.1", "-q", "--json")
DUMPS = 2
"""Of each process in one snapshot."""
WORKERS = 4
FREE_S = 2.0
DRIVER_S = 8.0
"""Our Ray driver leaves the cluster after the command has ended, and bounds itself to less."""
RAY_S = 30.0
"""For Ray to see that a driver or an agent was killed, to end its workers and to close its connections."""
CLOSES_S = 400.0
"""The GCS keeps a socket of each driver that has gone for 5 minutes (subscriber_timeout_ms), of any driver."""
EVERY = 50
SPELL = 10
"""After so many snapshots there is a spell without."""
QUIET_S = 3.0
MORE_DESCRIPTORS = 8
"""Ray opens and closes some by itself."""
RAY_ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_worker_niceness": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    # beside each snapshot a timeline is made, which takes longer than the snapshot where Ray keeps its 100,000 tasks
    "RAY_task_events_max_num_task_in_gcs": "1000",
}
JOB = """
import asyncio, json, os, sys, threading, time
temp = os.path.join(os.environ["RAY_TMPDIR"], "ray")
os.makedirs(temp)
import ray
from ray._private import state
from ray._private.worker import global_worker
from ray.autoscaler.v2.sdk import get_cluster_resource_state
from ray.cluster_utils import Cluster
shared = {"num_cpus": 2, "object_store_memory": 80 << 20}
cluster = Cluster(initialize_head=True, head_node_args={**shared, "include_dashboard": False, "temp_dir": temp})
nodes = [cluster.head_node, cluster.add_node(**shared)]
ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")

@ray.remote(num_cpus=0, scheduling_strategy="SPREAD")
class Worker:
    def __init__(self):
        self.gaps = []
        threading.Thread(target=self.note_gaps, daemon=True).start()
    def note_gaps(self):
        last = time.monotonic()
        while True:
            time.sleep(0.001)
            now = time.monotonic()
            if now - last > 0.003:
                self.gaps.append(now - last)
            last = now
    def step(self):
        until = time.thread_time() + 0.002
        while time.thread_time() < until:
            pass
        time.sleep(0.02)
    def read(self):
        said, self.gaps = self.gaps, []
        return os.getpid(), said

@ray.remote(num_cpus=0)
class Loop:
    async def pid(self):
        return os.getpid()
    async def serve(self):
        await asyncio.Event().wait()

workers = [Worker.remote() for _ in range(int(sys.argv[1]))]
loop = Loop.remote()
waits = loop.serve.remote()
steps = []

def look():
    demand = get_cluster_resource_state(global_worker.gcs_client)
    queued = [*demand.pending_resource_requests, *demand.pending_gang_resource_requests]
    packages = [k.decode() for k in global_worker.gcs_client.internal_kv_keys(b"gcs://", b"")]
    alive = [a for a in state.actors().values() if a["State"] != "DEAD"]
    jobs = [j["JobID"] for j in state.jobs() if not j["IsDead"]]
    return {"actors": sorted(a["ActorClassName"] for a in alive), "jobs": jobs, "queued": [str(q)[:200] for q in queued], "packages": packages}

def listen():
    global steps
    for line in sys.stdin:
        if line == "steps\\n":
            said, steps = steps, []
            told = {"steps": said, "gaps": [ray.get(w.read.remote())[1] for w in workers]}
        else:
            told = look()
        print(json.dumps(told), flush=True)
    os._exit(0)

ray.get([w.step.remote() for w in workers])
targets = [os.getpid(), ray.get(loop.pid.remote()), *(pid for pid, _ in ray.get([w.read.remote() for w in workers]))]
ours = [p[0].process.pid for node in nodes for name, p in node.all_processes.items() if name in ("raylet", "gcs_server")]
print(json.dumps({"address": cluster.address, "targets": targets, "ray": ours}), flush=True)
threading.Thread(target=listen, daemon=True).start()
while True:
    began = time.monotonic()
    ray.get([w.step.remote() for w in workers])
    steps.append(time.monotonic() - began)
"""
FORKS = """
import json, os, sys
import ray, ray_rl_debug.capture.cluster, ray_rl_debug.diagnosis.diagnose, ray_rl_debug.render.html.page, ray_rl_debug.timeline.live
from ray_rl_debug.commands import cli
print('"ready"', flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        sys.argv[1:] = json.loads(line)
        sys.exit(cli.main())
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
KINDS = {
    "supervisor": "/supervisor.py",
    "py-spy": "/py-spy dump",
    "Ray driver": "cluster.driver import",
    "agent": "RayRlDebugAgent",
    "its child": "waitpid(child",
}
RAYS = re.compile(r"^ray::(?!RayRlDebug)|site-packages/ray/")


class Program:
    """A program that is told one line and answers in lines. Its mark is on all that it starts, and its folders for files are its own."""

    def __init__(self, text: str, mark: str, folder: Path) -> None:
        self.mark = f"{mark}{os.getpid()}"
        places = {"RAY_TMPDIR": folder, "TMPDIR": folder / "tmp", "XDG_CACHE_HOME": folder / "cache", "HOME": folder / "home"}
        env = {**os.environ, **RAY_ENVIRONMENT, **{k: str(v) for k, v in places.items()}, MARK: self.mark}
        self.errors = folder / f"{mark}.err"
        with self.errors.open("wb") as errors:
            argv = [sys.executable, "-c", text, str(WORKERS)]
            self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=env)

    def ask(self, line: str) -> Any:
        assert self.child.stdin is not None
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return self.hear()

    def hear(self) -> Any:
        """What it says next; what Ray prints in between is left out."""
        assert self.child.stdout is not None
        for line in self.child.stdout:
            try:
                return json.loads(line)
            except ValueError:
                continue
        raise SystemExit(f"a program of this benchmark has ended: {self.errors.read_text(errors='replace')[-2000:]}")

    def processes(self) -> dict[int, str]:
        """What it started, without itself."""
        return {pid: line for pid, line in marked(self.mark).items() if pid != self.child.pid}

    def end(self) -> None:
        self.child.kill()
        self.child.communicate()
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Bench:
    """The cluster with its job, and the process whose forks are the command."""

    def __init__(self, folder: Path, together: int) -> None:
        for name in ("tmp", "cache", "home"):
            (folder / name).mkdir()
        self.folder = folder
        self.job = Program(JOB, "job", folder)
        self.lanes = [Program(FORKS, f"forks{n}-", folder) for n in range(together)]
        about = self.job.hear()
        self.address, self.targets, self.ray = about["address"], about["targets"], about["ray"]
        for lane in self.lanes:
            lane.hear()
        self.before = set(self.job.processes())
        self.chance = random.Random(os.getpid())
        self.found: list[str] = []
        """What was left, in words."""
        self.took: list[float] = []
        self.waited: dict[str, list[float]] = {
            "the job was free": [],
            "our Ray driver was gone": [],
            "Ray had removed the rest": [],
            "Ray had closed its sockets": [],
        }
        self.codes, self.killed = Counter[int](), Counter[str]()
        self.steps: dict[bool, list[float]] = {True: [], False: []}
        """Seconds of the steps with and without looks."""
        self.gaps: dict[bool, list[float]] = {True: [], False: []}

    def forget(self) -> None:
        """Begin to count anew."""
        self.job.ask("steps")
        for values in (self.steps, self.gaps):
            values.update({True: [], False: []})
        self.waited = {title: [] for title in self.waited}

    def take(self, is_kill: bool) -> int:
        """One snapshot of each lane, all at once, and the look at what they left at once; how many they were."""
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        began = time.monotonic()
        asked = [[*SNAPSHOT, "--address", self.address, "-o", str(self.folder / "out" / str(n))] for n in range(len(self.lanes))]
        commands = {lane.ask(json.dumps(words)) for lane, words in zip(self.lanes, asked, strict=True)}
        died = []
        if is_kill:
            usual = statistics.median(self.took)
            died = [self.kill(commands, began + moment) for moment in sorted(self.chance.uniform(0, usual) for _ in commands)]
        codes = [lane.hear() for lane in self.lanes]
        self.took.append(time.monotonic() - began)
        self.codes.update(codes)
        what = f"snapshot {sum(self.codes.values())}" + "".join(f", {kind} killed" for kind in died if kind)
        if not {"command", "its child"}.intersection(died):
            for code in set(codes) - {0, 3}:
                self.trouble(f"{what}: exit code {code}")
        self.wait("the job was free", FREE_S, what, lambda: [t for pid in self.targets for t in troubles(pid)] + self.orphans())
        self.wait("our Ray driver was gone", DRIVER_S, what, lambda: list(self.callers().values()))
        return len(codes)

    def callers(self) -> dict[int, str]:
        """The commands and what they started on this machine."""
        return {pid: line for lane in self.lanes for pid, line in lane.processes().items()}

    def kill(self, commands: set[int], moment: float) -> str | None:
        """SIGKILL to one of our processes at a moment; what it was."""
        time.sleep(max(0.0, moment - time.monotonic()))
        kinds: dict[str, list[int]] = {}
        for pid, line in (self.callers() | self.on_nodes()).items():
            kind = "command" if pid in commands else next((k for k, part in KINDS.items() if part in line), "other")
            kinds.setdefault(kind, []).append(pid)
        while kinds:
            kind = self.chance.choice(sorted(kinds))
            try:
                os.kill(self.chance.choice(kinds.pop(kind)), signal.SIGKILL)
            except ProcessLookupError:
                continue
            self.killed[kind] += 1
            return kind
        return None

    def on_nodes(self) -> dict[int, str]:
        """Agents and what they started."""
        return {pid: line for pid, line in self.job.processes().items() if pid not in self.before and not RAYS.search(line)}

    def orphans(self) -> list[str]:
        """What looks at processes for somebody who is gone."""
        agents = {pid for pid, line in marked(self.job.mark).items() if "RayRlDebug" in line}
        callers = agents.union(*(marked(lane.mark) for lane in self.lanes))
        return [f"{pid} {line[:90]}" for pid, line in self.on_nodes().items() if pid not in callers and not callers.intersection(parents(pid))]

    def wait(self, until: str, seconds: float, what: str, left: Callable[[], Sequence[str]]) -> None:
        """Until nothing is left; that time and what is left after it are noted."""
        began = time.monotonic()
        while (still := left()) and time.monotonic() < began + seconds:
            time.sleep(0.01)
        self.waited[until].append(time.monotonic() - began)
        if still:
            self.trouble(f"{what}: {seconds:g} s later, and not yet {until}: {still[:5]}")

    def trouble(self, text: str) -> None:
        self.found.append(text)
        print(text, flush=True)

    def spell(self, is_look: bool) -> None:
        """Note the steps and the actors' gaps since the last spell."""
        said = self.job.ask("steps")
        self.steps[is_look] += said["steps"]
        self.gaps[is_look] += [gap for gaps in said["gaps"] for gap in gaps]

    def state(self) -> dict[str, set[str]]:
        """All that must not become more."""
        table = self.job.ask("state")
        processes = {f"{pid} {line.partition('.')[0].strip()[:60]}" for pid, line in self.job.processes().items()}
        files = {str(p) for name in ("tmp", "cache", "home", "ray") for p in (self.folder / name).rglob("*") if "/logs/" not in str(p)}
        # of Ray's logs only new kinds count
        logs = {re.match(r"[a-z]*", p.name)[0] for p in (self.folder / "ray").glob("session_2*/logs/*")}  # type: ignore[index]
        return {
            **{key: set(rows) for key, rows in table.items()},
            "processes": processes,
            "files": files | set(map(str, Path("/tmp").glob("rayrl*"))),
            "logs": logs,
        }

    def descriptors(self) -> dict[int, tuple[int, int]]:
        """Of Ray's processes and the job's: all, and sockets among them."""
        return {pid: count_descriptors(pid) for pid in (*self.ray, *self.targets)}

    def describe(self) -> str:
        """What has come of the snapshots until now."""
        opened, each = [count_descriptors(pid)[0] for pid in self.ray], f"{statistics.median(self.took[-EVERY:]):.1f} s each"
        killed = f", killed {dict(self.killed)}" if self.killed else ""
        codes = f"exit codes {dict(self.codes)}{killed}, descriptors of Ray's processes {opened}"
        return f"{each}, {len(self.found)} troubles, {codes}, load {os.getloadavg()[0]:.1f}"

    def more(self, base: dict[str, set[str]]) -> list[str]:
        """What has become more."""
        return [f"{key}: {thing}" for key, things in self.state().items() for thing in sorted(things - base[key])]

    def more_open(self, base: dict[int, tuple[int, int]]) -> list[str]:
        now = self.descriptors()
        return [f"descriptors (sockets) of {pid}: {base[pid]}, now {n}" for pid, n in now.items() if n[0] > base[pid][0] + MORE_DESCRIPTORS]


def parents(pid: int) -> list[int]:
    """The processes above one, the nearest first."""
    found = []
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            break
        found.append(pid)
    return found


def count_descriptors(pid: int) -> tuple[int, int]:
    links = []
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.append(os.readlink(fd))
        except OSError:
            continue
    return len(links), sum(link.startswith("socket:") for link in links)


def shown(values: Sequence[float]) -> str:
    """The distribution of some seconds."""
    ordered = sorted(values) or [0.0]
    return ", ".join(f"{part:g} %: {1000 * ordered[min(len(ordered) - 1, int(part / 100 * len(ordered)))]:.1f} ms" for part in (50, 90, 99, 100))


def run_half(bench: Bench, count: int, minutes: float, base: dict[str, set[str]], opened: dict[int, tuple[int, int]], *, is_kill: bool) -> None:
    """Some snapshots, and spells without; every so often the look at all that Ray keeps."""
    name, until, done, looked_s = "with a kill" if is_kill else "without a kill", time.monotonic() + 60 * minutes, 0, 0.0
    bench.forget()
    try:
        while done < count and time.monotonic() < until:
            began = time.monotonic()
            taken = sum(bench.take(is_kill) for _ in range(SPELL))
            looked_s += time.monotonic() - began
            bench.spell(True)
            time.sleep(QUIET_S)
            bench.spell(False)
            done += taken
            if done % EVERY < taken or done >= count or time.monotonic() >= until:
                bench.wait("Ray had removed the rest", RAY_S, f"{done} {name}", lambda: bench.more(base))
                print(f"{done} {name}: {bench.describe()}", flush=True)
        bench.wait("Ray had closed its sockets", CLOSES_S, f"{done} {name}", lambda: bench.more_open(opened))
    finally:
        print(f"{done} snapshots {name}")
        share = done / SPELL / len(bench.lanes) * QUIET_S / max(looked_s, 1.0)
        for title, all_values, most in (
            ("steps", bench.steps, 0),
            ("longest gaps of the actors, one for each dump", bench.gaps, done * DUMPS * WORKERS),
        ):
            for when, part in ((True, 1.0), (False, share)):
                values = sorted(all_values[when])[-max(1, round(most * part)) if most else 0 :]
                print(f"  {title}, {'while snapshots are taken' if when else 'without'}: {shown(values)}")
        for title, waited in bench.waited.items():
            print(f"  until {title}: {shown(waited)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int, nargs="?", default=1000)
    parser.add_argument("--minutes", type=float, default=50.0, help="for each half")
    parser.add_argument("--together", type=int, default=1, help="commands at the same time")
    arguments = parser.parse_args()
    os.environ.pop("RAY_ADDRESS", None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to end"))
    with tempfile.TemporaryDirectory(prefix="ms", dir="/tmp", ignore_cleanup_errors=True) as folder:
        bench = Bench(Path(folder), arguments.together)
        try:
            for _ in range(SPELL):  # they leave our code where Ray unpacks it, once, and open what Ray keeps open
                bench.take(False)
            bench.state()
            time.sleep(SPELL)
            base, opened = bench.state(), bench.descriptors()
            for is_kill in (False, True):
                run_half(bench, arguments.count, arguments.minutes, base, opened, is_kill=is_kill)
        finally:
            bench.job.end()
            for lane in bench.lanes:
                lane.end()
    print("\n".join(bench.found) or "nothing was left")
    sys.exit(bool(bench.found))


if __name__ == "__main__":
    main()
