"""What a snapshot takes beside its sampling window: on two local Ray nodes with 16 workers, without agents and with agents already there.

Run: ``python benchmarks/snapshot_overhead.py [--workers 16] [--repeats 5]``, on a busy machine ``chrt -r 10 python ...``. The aims: at most
5 s cold, at most 1 s warm.

Three ways are timed, each as the seconds beyond the window of 2 s:
``cold``     the command, which starts its agents and removes them
``warm``     the command, with agents that a companion keeps
``resident`` a companion that keeps the agents and takes the snapshot itself
The command's figure is its own (from its first look at the cluster to the last fact); the whole process, with the start of the interpreter,
the analysis and the report, stands beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ray_rl_debug.capture.cluster import ClusterOptions
from ray_rl_debug.capture.warm_agents import Agents
from ray_rl_debug.collect.options import CollectOptions

AIMS_S = {"cold": 5.0, "warm": 1.0, "resident": 1.0}
COLLECT = CollectOptions(samples=3, interval_s=1.0)
RAY_ENVIRONMENT = {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0"}
JOB = """
import json, os, sys, time
folder = sys.argv[1]
os.environ["RAY_TMPDIR"] = folder
temp = os.path.join(folder, "ray")
os.makedirs(temp)
import ray
from ray.cluster_utils import Cluster
shared = {"num_cpus": 2, "object_store_memory": 80 << 20}
cluster = Cluster(initialize_head=True, head_node_args={**shared, "include_dashboard": False, "temp_dir": temp})
cluster.add_node(**shared)
ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")

@ray.remote(num_cpus=0, scheduling_strategy="SPREAD")
class Worker:
    def ready(self):
        return True
    def work(self):
        time.sleep(3600)

workers = [Worker.remote() for _ in range(int(sys.argv[2]))]
ray.get([w.ready.remote() for w in workers])
refs = [w.work.remote() for w in workers]
print(json.dumps({"address": cluster.address}), flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@contextmanager
def cluster(workers: int) -> Iterator[str]:
    """The GCS address of a cluster of two nodes on this machine whose workers all hang."""
    with tempfile.TemporaryDirectory(prefix="so", dir="/tmp") as folder:
        argv = [sys.executable, "-c", JOB, folder, str(workers)]
        child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            line = next((line for line in child.stdout if line.startswith("{")), None)
            if line is None:
                raise SystemExit("the cluster does not start")
            yield str(json.loads(line)["address"])
        finally:
            child.stdin.close()
            child.wait(60)


def by_command(address: str) -> tuple[float, float]:
    """Seconds beyond the window: the capture, and the whole process."""
    started = time.monotonic()
    samples = ["--samples", str(COLLECT.samples), "--interval", str(COLLECT.interval_s)]
    argv = [sys.executable, "-m", "ray_rl_debug", "snapshot", "--address", address, *samples, "--json", "-q"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    took = time.monotonic() - started
    if done.returncode not in (0, 1, 3):
        raise SystemExit(done.stderr)
    report: dict[str, Any] = json.loads(done.stdout)
    if any(not n["answered"] for n in report["nodes"]) or any(g["id"] in ("RRD901", "RRD920") for g in report["gaps"]):
        raise SystemExit(f"a node did not answer: {report['gaps']}")
    return float(report["timing"]["outside_s"]), took - COLLECT.window_s


def by_resident(agents: Agents) -> tuple[float, float]:
    started = time.monotonic()
    snapshot = agents.gather(COLLECT)
    return snapshot.timing["outside_s"], time.monotonic() - started - COLLECT.window_s


def measure(name: str, take: Callable[[], tuple[float, float]], repeats: int) -> float:
    """Print the median of the repeats, and return its ratio to the aim."""
    taken = [take() for _ in range(repeats)]
    capture, whole = ([t[i] for t in taken] for i in (0, 1))
    ratio = statistics.median(capture) / AIMS_S[name]
    spread = f"({min(capture):.2f} to {max(capture):.2f})"
    aim = f"aim {AIMS_S[name]:g} s, ratio {ratio:.2f}"
    print(f"{name:9} {statistics.median(capture):5.2f} s {spread}, {aim}; whole process {statistics.median(whole):.2f} s", flush=True)
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    os.environ.update(RAY_ENVIRONMENT)
    os.environ.pop("RAY_ADDRESS", None)
    print(
        f"cores {len(os.sched_getaffinity(0))}, workers {arguments.workers}, repeats {arguments.repeats}, load {os.getloadavg()[0]:.1f}", flush=True
    )
    with cluster(arguments.workers) as address:
        ratios = [measure("cold", lambda: by_command(address), arguments.repeats)]
        with Agents(ClusterOptions(address=address, collect=COLLECT)) as agents:
            missing = agents.start()
            if missing:
                raise SystemExit(f"no agents: {missing}")
            ratios.append(measure("warm", lambda: by_command(address), arguments.repeats))
            ratios.append(measure("resident", lambda: by_resident(agents), arguments.repeats))
            agents.stop()
    print(f"largest ratio {max(ratios):.2f} (aim: at most 1), load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
