"""What the companion costs while a run is healthy: processor time and memory of its parts, and the run's step time with and without it.

Run: ``python benchmarks/watch_cost.py [--ranks 16] [--minutes 10] [--ray-agents]``. For the step time the companion's processes are stopped and
continued in turn, so that both halves of a pair see the same machine. Aims: 0.1 % of a core and 150 MB per node, step time within 1 %.
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from integration.clusters import cluster, environment, processes_titled, program, wait_for

PARTS = ("watch.watcher import main", "ray::RayRlDebugAgent", "ray_rl_debug.cluster.driver import main")
BLOCK_S = 20.0
MARK = f"WATCH_COST={uuid.uuid4().hex}"
"""In the environment of all that this program starts: nobody else's processes may be stopped."""


def ours(part: str) -> list[int]:
    found = []
    for pid in processes_titled(part):
        try:
            if MARK.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def cpu_s(pid: int) -> tuple[float, float]:
    """Processor time of a process itself, and of the programs it ran: py-spy during a closer look."""
    fields = [int(f) for f in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]]
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    return (fields[0] + fields[1]) * tick_s, (fields[2] + fields[3]) * tick_s


def memory_mb(pid: int) -> tuple[float, float]:
    """Resident, and resident in proportion to the sharing."""
    rows = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if ":" in line)
    return tuple(int(rows[name].split()[0]) / 1024 for name in ("Rss", "Pss"))  # type: ignore[return-value]


def step_seconds(folder: Path, start_s: float, end_s: float) -> float:
    times = [float(line.split()[1]) for line in (folder / "steps.txt").read_text().splitlines()]
    inside = [t for t in times if start_s <= t <= end_s]
    return statistics.median(b - a for a, b in itertools.pairwise(inside))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--ray-agents", action="store_true")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rrdcost", dir="/tmp"))
    name, _, value = MARK.partition("=")
    env = environment(**{name: value})
    with cluster(1, env=env) as c, program("loop_program.py", c["address"], folder, asked.ranks, 1):
        argv = [sys.executable, "-m", "ray_rl_debug", "watch", "--address", c["address"], "-o", str(folder / "out")]
        with (folder / "log").open("w") as log:
            companion = subprocess.Popen([*argv, *(["--ray-agents"] if asked.ray_agents else [])], env=env, stdout=log, stderr=log)
        try:
            wait_for(lambda: "watching 1 job on" in (folder / "log").read_text(), 120)
            time.sleep(30)  # the first look of a run that is not known yet
            parts = {"companion": companion.pid}
            parts |= {f"{part.rpartition(' ')[0] or part} {pid}": pid for part in PARTS for pid in ours(part)}
            report(folder, parts, asked.minutes * 60)
        finally:
            companion.terminate()
            companion.wait(60)
    print((folder / "log").read_text().count("looking closer"), "closer looks in all")


def report(folder: Path, parts: dict[str, int], seconds: float) -> None:
    started, at_first = time.monotonic(), {name: cpu_s(pid) for name, pid in parts.items()}
    time.sleep(seconds / 2)
    span = time.monotonic() - started
    for name, pid in parts.items():
        resident, shared = memory_mb(pid)
        own, ran = ((100 * (now - then) / span) for now, then in zip(cpu_s(pid), at_first[name], strict=True))
        print(f"{name:40} {own:6.3f} % of a core, {ran:6.3f} % in closer looks  {resident:6.1f} MB resident, {shared:6.1f} MB in proportion")
    ratios = []
    until = time.monotonic() + seconds / 2
    while time.monotonic() < until:
        half = []
        for kind in (signal.SIGCONT, signal.SIGSTOP) if len(ratios) % 2 else (signal.SIGSTOP, signal.SIGCONT):
            for pid in parts.values():
                os.kill(pid, kind)
            start = time.time()
            time.sleep(BLOCK_S)
            half.append((kind, step_seconds(folder, start + 1, time.time())))
        seen = dict(half)
        ratios.append(seen[signal.SIGCONT] / seen[signal.SIGSTOP])
    for pid in parts.values():
        os.kill(pid, signal.SIGCONT)
    error = statistics.stdev(ratios) / len(ratios) ** 0.5 if len(ratios) > 1 else float("nan")
    middle, mean = statistics.median(ratios), statistics.mean(ratios)
    print(f"step time with / without: median {middle:.4f}, mean {mean:.4f} ± {error:.4f} over {len(ratios)} pairs")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
