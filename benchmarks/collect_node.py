"""Our sampling of many processes against a shell loop of py-spy over the same processes.

Run: ``python benchmarks/collect_node.py [--processes 16] [--repeats 9]``. Prints the ratio of the medians; the aim is at most 0.8.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from ray_rl_debug.collect.pyspy import find_pyspy
from ray_rl_debug.collect.stacks import StackSampler, Target

AIM = 0.8
PLAIN = "import sys, threading, time; [threading.Thread(target=time.sleep, args=(3600,), daemon=True).start() for _ in range(4)]"
WITH_TORCH = "import torch; " + PLAIN
END = "; open(sys.argv[1], 'w').close(); time.sleep(3600)"


def start(count: int, folder: Path) -> list[subprocess.Popen[bytes]]:
    """Sleeping Python processes with five threads each; every fourth has torch loaded."""
    children = []
    for i in range(count):
        text = (WITH_TORCH if i % 4 == 0 else PLAIN) + END
        children.append(subprocess.Popen([sys.executable, "-c", text, folder / f"ready{i}"]))
    end = time.monotonic() + 120
    while len(list(folder.glob("ready*"))) < count:
        if time.monotonic() > end or any(child.poll() is not None for child in children):
            raise SystemExit("the processes to look at do not start")
        time.sleep(0.05)
    return children


def seconds_of_loop(pyspy: str, pids: list[int]) -> float:
    started = time.monotonic()
    script = 'binary=$1; shift; for p in "$@"; do "$binary" dump --pid "$p" > /dev/null || exit 1; done'
    subprocess.run(["sh", "-c", script, "sh", pyspy, *map(str, pids)], check=True)
    return time.monotonic() - started


def seconds_of_sample(sampler: StackSampler, pids: list[int]) -> float:
    started = time.monotonic()
    sampler.sample([Target(pid=pid, state="S") for pid in pids], 0.0)
    return time.monotonic() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--concurrency", type=int, default=None)
    arguments = parser.parse_args()
    pyspy = find_pyspy()
    if pyspy is None:
        raise SystemExit("py-spy was not found")
    options = SimpleNamespace(samples=3, interval_s=1.0, native=False, pystack=False, timeout_s=4.0, pyspy=None)
    more = {} if arguments.concurrency is None else {"concurrency": arguments.concurrency}
    sampler = StackSampler(options, pyspy, **more)
    with tempfile.TemporaryDirectory() as folder:
        children = start(arguments.processes, Path(folder))
        try:
            pids = [child.pid for child in children]
            loop, ours = [], []
            for _ in range(arguments.repeats):
                loop.append(seconds_of_loop(pyspy, pids))
                ours.append(seconds_of_sample(sampler, pids))
        finally:
            for child in children:
                child.kill()
                child.wait()
    stacks = sampler.finish()
    taken = sum(len(samples) for samples in stacks.samples.values())
    ratio = statistics.median(ours) / statistics.median(loop)
    print(f"cores {len(os.sched_getaffinity(0))}, processes {len(pids)}, repeats {arguments.repeats}, load {os.getloadavg()[0]:.1f}")
    print(f"shell loop  median {statistics.median(loop):.3f} s  ({min(loop):.3f} to {max(loop):.3f})")
    print(f"one sample  median {statistics.median(ours):.3f} s  ({min(ours):.3f} to {max(ours):.3f}), {taken} stacks taken, {len(stacks.gaps)} gaps")
    print(f"ratio {ratio:.2f} (aim: at most {AIM})")


if __name__ == "__main__":
    main()
