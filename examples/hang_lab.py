"""Programs that hang on purpose: real Ray clusters, real collectives, real locks, files, sockets and processes.

    python examples/hang_lab.py list                       names, stories and the truth
    python examples/hang_lab.py run NAME --hold 120        start one; prints one JSON line when the hang is reached

The line holds name, gcs_address, the pids by name and the truth. The program holds for --hold seconds or until its standard input
closes, then ends everything it started. Then, in another terminal: rayrl-debug snapshot --address GCS_ADDRESS
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import select
import shutil
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

import psutil
from flight_dumps import FLIGHT_FOLDER
from kit import SCENARIOS, Scenario, Stage

FAMILIES = ("async_works", "collectives", "io_and_locks", "not_hangs", "ray_level", "rollout")
READY_DEADLINE_S = 120.0


def load_families() -> None:
    """Register every scenario whose imports are there; those with collectives need torch."""
    for family in FAMILIES:
        try:
            importlib.import_module(family)
        except ModuleNotFoundError as e:
            print(f"left out {family}.py: {e}", file=sys.stderr)


def run(scenario: Scenario, hold_s: float, flight: str | None = None) -> NoReturn:
    """Start the cluster and the job, announce the hang, hold, take everything down. `flight`: see `flight_dumps`."""
    folder = tempfile.mkdtemp(prefix="lab-", dir="/tmp")  # short: Unix socket paths are limited to 107 bytes
    announce = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Ray and the actors print must not mix with the announcement
    os.environ.update(
        RAY_AUTH_MODE="disabled",
        RAY_USAGE_STATS_ENABLED="0",
        RAY_worker_niceness="0",
        RAY_TMPDIR=folder,
        OMP_NUM_THREADS="1",
        GLOO_SOCKET_IFNAME="lo",
        PYTHONPATH=os.pathsep.join([str(Path(__file__).resolve().parent), os.environ.get("PYTHONPATH", "")]),
    )
    os.environ.pop("RAY_ADDRESS", None)
    if flight is not None:
        os.environ[FLIGHT_FOLDER] = flight
    Path(folder, "driver.pid").write_text(str(os.getpid()))
    try:
        import ray
        from ray.cluster_utils import Cluster

        temp = os.path.join(folder, "ray")
        os.makedirs(temp)
        node = {"num_cpus": 4, "object_store_memory": 100 << 20}
        cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False, "temp_dir": temp})
        for _ in range(scenario.nodes - 1):
            cluster.add_node(**node)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        keeper = (scenario, folder, cluster.address, announce, hold_s)
        threading.Thread(target=_announce_and_hold, args=keeper, name="lab", daemon=True).start()
        stage = Stage(folder)  # kept: an actor ends with the last handle on it
        _drive(scenario.start(stage))
    except KeyboardInterrupt:
        _end(folder, 130)
    except Exception:
        traceback.print_exc()
        _end(folder, 2)


def _drive(awaited: Any) -> NoReturn:
    """What the driver does: wait for the job, or, as in a notebook, for its user."""
    if awaited is not None:
        import ray

        try:
            ray.get(awaited)
        except ray.exceptions.RayError:
            traceback.print_exc()
    while True:
        if not sys.stdin.readline():
            time.sleep(0.5)


def _announce_and_hold(scenario: Scenario, folder: str, address: str, announce: Any, hold_s: float) -> None:
    deadline = time.monotonic() + READY_DEADLINE_S
    while not all(Path(folder, f"{name}.there").exists() for name in scenario.ready):
        if time.monotonic() > deadline:
            missing = [name for name in scenario.ready if not Path(folder, f"{name}.there").exists()]
            error = f"the hang was not reached: {', '.join(missing)} did not call seat.arrive() in {READY_DEADLINE_S:.0f} s"
            print(json.dumps({"name": scenario.name, "error": error}), file=announce, flush=True)
            _end(folder, 2)
        time.sleep(0.05)
    time.sleep(scenario.settle_s)
    pids = {path.stem: int(path.read_text()) for path in Path(folder).glob("*.pid")}
    line = {"name": scenario.name, "gcs_address": address, "pids": pids, "truth": dataclasses.asdict(scenario.truth)}
    print(json.dumps(line), file=announce, flush=True)
    _wait_for_release(hold_s)
    _end(folder, 0)


def _wait_for_release(hold_s: float) -> None:
    """Return when standard input has no writer any more, or after `hold_s`."""
    hung_up = select.poll()
    hung_up.register(0, select.POLLHUP)
    deadline = time.monotonic() + hold_s
    while time.monotonic() < deadline:
        if any(event & (select.POLLHUP | select.POLLNVAL) for _, event in hung_up.poll(0)):
            return
        time.sleep(0.1)


def _end(folder: str, code: int) -> NoReturn:
    """End every process we started. SIGKILL: a stuck or stopped process hears nothing else, and the cluster is ours alone."""
    started = psutil.Process().children(recursive=True)
    for path in Path(folder).glob("*.pid"):  # orphans are nobody's children any more
        try:
            known = psutil.Process(int(path.read_text()))
            if known.pid != os.getpid() and known.environ().get("RAY_TMPDIR") == folder:
                started.append(known)
        except (psutil.Error, ValueError):
            continue
    for process in started:
        try:
            process.kill()
        except psutil.Error:
            continue
    psutil.wait_procs(started, timeout=5)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="names, stories and the truth")
    listing.add_argument("--json", action="store_true")
    running = verbs.add_parser("run", help="start one")
    running.add_argument("name")
    running.add_argument("--hold", type=float, default=120.0, metavar="SECONDS")
    running.add_argument("--flight", metavar="FOLDER", help="the job is prepared: its ranks leave Flight Recorder dumps there")
    given = parser.parse_args()
    load_families()
    if given.verb == "run":
        if given.name not in SCENARIOS:
            parser.error(f"no scenario {given.name}; there are: {', '.join(sorted(SCENARIOS))}")
        run(SCENARIOS[given.name], given.hold, given.flight)
    if given.json:
        print(json.dumps({s.name: {"story": s.story, "nodes": s.nodes, "truth": dataclasses.asdict(s.truth)} for s in SCENARIOS.values()}))
        return
    for s in SCENARIOS.values():
        print(f"{s.name}\n    {s.story}\n    {s.truth.state}, {s.truth.cause}, by {', '.join(s.truth.culprits) or 'nobody'}")


if __name__ == "__main__":
    main()
