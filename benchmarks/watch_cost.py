"""What the companion costs while a run is healthy: processor time and memory of its parts, and the run's step time with and without it.

Run: ``python benchmarks/watch_cost.py [--ranks 16] [--minutes 10] [--pairs 15] [--ray-agents]`` on a machine that does nothing else; with the
defaults it takes 21 minutes. First the processor time over the stated minutes, then pairs of blocks of 20 s: for one of the two the companion's
processes are stopped, so that both see the same machine, and which comes first changes with every pair.
Aims: 0.1 % of a core per node and 150 MB per process, step time within 1 %.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from integration.clusters import cluster, environment, processes_titled, program, wait_for

PARTS = {
    "companion": "ray_rl_debug watch",
    "watcher": "watch.watcher import main",
    "GPU reader": "watch.gpu_watch import main",
    "agent": "ray::RayRlDebugAgent",
    "driver of agents": "ray_rl_debug.cluster.driver import main",
}
AIM_SHARE = 0.1
"""Per cent of a core."""
BLOCK_S = 20.0
SETTLE_S = 30.0
"""The first look at a run that is not known yet."""
MARK = f"WATCH_COST={uuid.uuid4().hex}"
"""In the environment of all that this program starts: nobody else's processes may be stopped."""


def ours() -> dict[int, str]:
    """Pids of the companion's processes, and what they are."""
    found = {}
    for name, part in PARTS.items():
        for pid in processes_titled(part):
            with contextlib.suppress(OSError):
                if MARK.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                    found[pid] = name
    return found


def cpu_s(pid: int) -> tuple[float, float]:
    """Processor time of a process itself, to the nanosecond of its threads, and of the programs it ran: py-spy during a closer look."""
    own = sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    return max(own, (int(fields[11]) + int(fields[12])) * tick_s), (int(fields[13]) + int(fields[14])) * tick_s


def memory_mb(pid: int) -> tuple[float, float]:
    """Resident, and resident in proportion to the sharing."""
    rows = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if ":" in line)
    return tuple(int(rows[name].split()[0]) / 1024 for name in ("Rss", "Pss"))  # type: ignore[return-value]


def step_seconds(folder: Path, start_s: float, end_s: float) -> float:
    times = [float(line.split()[1]) for line in (folder / "steps.txt").read_text().splitlines()]
    inside = [t for t in times if start_s <= t <= end_s]
    return statistics.median(b - a for a, b in itertools.pairwise(inside))


def looks(folder: Path) -> list[float]:
    """When a closer look was taken."""
    lines = [line for path in (folder / "out").glob("*/history.jsonl") for line in path.read_text().splitlines()]
    return [event["time_s"] for event in map(json.loads, lines) if event["kind"] in ("look", "verdict")]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--ray-agents", action="store_true")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rrdcost", dir="/tmp"))
    name, _, value = MARK.partition("=")
    env = environment(**{name: value})
    with cluster(1, env=env) as c, program("loop_program.py", c["address"], folder, asked.ranks, 1, env=env):
        argv = [sys.executable, "-m", "ray_rl_debug", "watch", "--address", c["address"], "-o", str(folder / "out")]
        with (folder / "log").open("w") as log:
            companion = subprocess.Popen([*argv, *(["--ray-agents"] if asked.ray_agents else [])], env=env, stdout=log, stderr=log)
        try:
            wait_for(lambda: "watching 1 job on" in (folder / "log").read_text(), 120)
            time.sleep(SETTLE_S)
            tell_processor_time(folder, asked.minutes * 60)
            tell_step_times(folder, asked.pairs)
        finally:
            companion.terminate()
            companion.wait(60)


def tell_processor_time(folder: Path, seconds: float) -> None:
    began, began_s, before = time.monotonic(), time.time(), {pid: cpu_s(pid) for pid in ours()}
    print(f"processor time: {seconds:.0f} s from now", file=sys.stderr, flush=True)
    time.sleep(seconds)
    span, total = time.monotonic() - began, 0.0
    for pid, name in ours().items():
        at_first = before.get(pid, (0.0, 0.0))
        own, ran = (100 * (now - then) / span for now, then in zip(cpu_s(pid), at_first, strict=True))
        total += own + ran
        resident, shared = memory_mb(pid)
        print(f"{name:18} {own:6.3f} % of a core, {ran:6.3f} % in programs it ran  {resident:6.1f} MB resident, {shared:6.1f} MB in proportion")
    taken = [at - began_s for at in looks(folder) if at >= began_s]
    print(f"in all             {total:6.3f} % of a core over {span:.0f} s (aim {AIM_SHARE:g} %), {len(taken)} closer looks in that time {_at(taken)}")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)


def tell_step_times(folder: Path, pairs: int) -> None:
    ratios = []
    for number in range(pairs):
        print(f"step time: pair {number + 1} of {pairs}", file=sys.stderr, flush=True)
        seen: dict[bool, float] = {}
        for runs in (True, False) if number % 2 else (False, True):
            with contextlib.nullcontext() if runs else stopped():
                start = time.time()
                time.sleep(BLOCK_S)
                seen[runs] = step_seconds(folder, start + 1, time.time())
        ratios.append(seen[True] / seen[False])
    if ratios:
        low, high = _spread(ratios)
        print(f"step time with / without: median {statistics.median(ratios):.4f} (95 % of resamplings {low:.4f} to {high:.4f}), {len(ratios)} pairs")
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


@contextlib.contextmanager
def stopped() -> Iterator[None]:
    """The companion's processes stand still for a while."""
    pids = list(ours())
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _spread(ratios: list[float]) -> tuple[float, float]:
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[50], medians[1949]


def _at(taken: list[float]) -> str:
    return f"(after {', '.join(f'{t:.0f}' for t in taken)} s)" if taken else ""


if __name__ == "__main__":
    main()
