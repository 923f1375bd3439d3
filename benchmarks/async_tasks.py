"""Reading asyncio tasks from outside, beside what the process itself needs for the same walk; and whether its loop notices.

Run: ``python benchmarks/async_tasks.py [--python PATH] [--repeats 9] [--rounds 12] [--ray]``. The aims are 0.15 s for 1,000 tasks, 1 s for
10,000 and 0.1 s for an actor with torch, on one core that is free: on a busy machine read the processor's seconds. ``--ray`` starts a Ray of its own
with one such actor.

Whether the loop notices: a task of the target sleeps a millisecond again and again and keeps how long that took. Each round has four spells: alone,
read without a pause and beside a neighbour that only spins (in turns), alone. What reading adds is the difference to the neighbour of the same round,
since both take a core; the two spells alone tell how much two equal spells differ. Both are told as the median of the rounds with its 95 % interval
(by order, of any distribution): reading is noticed when its interval lies above that of the noise. With two cores or more the target has one for
itself.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ray_rl_debug.collect.async_tasks import read_async_tasks

AIMS_S = {1000: 0.15, 10_000: 1.0}
ACTOR_AIM_S = 0.1
SPELL_S = 0.8
METRICS = ("median", "99 %", "worst")

PROGRAM = """
import asyncio, statistics, sys, time

async def call(lock):
    async with lock:
        pass

async def episode(lock):
    await call(lock)

async def beats(gaps):
    last = time.perf_counter()
    while True:
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        gaps.append(now - last)
        last = now

def walk():
    found = []
    for task in asyncio.all_tasks():
        coroutine, chain = task.get_coro(), []
        while hasattr(coroutine, "cr_frame"):
            chain.append((coroutine.__qualname__, coroutine.cr_code.co_filename, coroutine.cr_frame.f_lineno if coroutine.cr_frame else 0))
            coroutine = coroutine.cr_await
        found.append((task.get_name(), chain, coroutine))
    return found

async def main(count):
    lock = asyncio.Lock()
    await lock.acquire()
    keep = [asyncio.create_task(episode(lock)) for _ in range(count)]
    gaps = []
    keep.append(asyncio.create_task(beats(gaps)))
    await asyncio.sleep(0.1)
    loop = asyncio.get_running_loop()
    while True:
        line = (await loop.run_in_executor(None, sys.stdin.readline)).strip()
        if line == "walk":
            began = time.perf_counter()
            walk()
            print(time.perf_counter() - began, flush=True)
        elif line == "gaps":
            ordered = sorted(gaps) or [0.0]
            print(*(f"{1000 * ordered[int(q * (len(ordered) - 1))]:.2f}" for q in (0.5, 0.99, 1)), flush=True)
            gaps.clear()
        else:
            return

asyncio.run(main(int(sys.argv[1])))
"""


class Agent:
    """An async actor with torch loaded and calls that never end."""

    def __init__(self) -> None:
        import asyncio

        import torch

        self.torch, self.event = torch, asyncio.Event()

    async def episode(self) -> None:
        await self.event.wait()

    async def pid(self) -> int:
        return os.getpid()


class Target:
    """A program with many tasks that answers questions about itself."""

    def __init__(self, python: str, count: int) -> None:
        self._child = subprocess.Popen([python, "-c", PROGRAM, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._child.pid
        self.ask("walk")
        self.ask("gaps")

    def ask(self, question: str) -> str:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(question + "\n")
        self._child.stdin.flush()
        return self._child.stdout.readline().strip()

    def end(self) -> None:
        self._child.kill()
        self._child.wait()


def read(pid: int, repeats: int) -> tuple[list[float], list[float], int]:
    """Seconds by the clock and of the processor, and the tasks found."""
    clock, processor, tasks = [], [], 0
    for _ in range(repeats):
        began, spent = time.perf_counter(), time.process_time()
        found, gap = read_async_tasks(pid, deadline_s=30)
        clock.append(time.perf_counter() - began)
        processor.append(time.process_time() - spent)
        if found is None or gap is not None:
            raise SystemExit(f"not read: {gap}")
        tasks = len(found)
    return clock, processor, tasks


def row(name: str, clock: list[float], processor: list[float], aim: float, more: str = "") -> None:
    wall, spent = statistics.median(clock), statistics.median(processor)
    verdict = "met" if spent <= aim else "missed"
    print(f"{name:<16} clock {wall:.3f} s ({min(clock):.3f} to {max(clock):.3f})  processor {spent:.3f} s  aim {aim:g} s {verdict}{more}")


def compare(python: str, repeats: int) -> None:
    for count, aim in AIMS_S.items():
        target = Target(python, count)
        try:
            clock, processor, tasks = read(target.pid, repeats)
            own = [float(target.ask("walk")) for _ in range(repeats)]
            row(f"{tasks:,} tasks", clock, processor, aim, f"; its own walk {statistics.median(own):.3f} s, while its loop stands")
        finally:
            target.end()


def notice(python: str, rounds: int) -> None:
    """Gaps of the target's loop while it is read, in milliseconds, beside those of other spells of the same round."""
    cores = sorted(os.sched_getaffinity(0))
    target, reads = Target(python, 1000), 0
    if len(cores) > 1:
        os.sched_setaffinity(target.pid, cores[:1])  # threads started later inherit it; the loop is the first
        os.sched_setaffinity(0, cores[1:])

    def read_once() -> None:
        nonlocal reads
        read_async_tasks(target.pid)
        reads += 1

    spells: dict[str, list[list[float]]] = {"alone": [], "neighbour": [], "read": [], "alone again": []}
    work: dict[str, Callable[[], object]] = {"neighbour": lambda: sum(range(10_000)), "read": read_once}
    try:
        for number in range(rounds):
            middle = ["neighbour", "read"] if number % 2 else ["read", "neighbour"]
            for name in ("alone", *middle, "alone again"):
                spells[name].append(_spell(target, work.get(name)))
    finally:
        target.end()
        os.sched_setaffinity(0, cores)
    print(f"loop: {rounds} rounds of 4 x {SPELL_S:g} s, {reads} reads of 1,002 tasks; gaps in ms: {', '.join(METRICS)}; medians of the rounds")
    for name, rows in spells.items():
        print(f"  {name:<12}", *(f"{statistics.median(row[i] for row in rows):8.2f}" for i in range(len(METRICS))))

    def differences(one: str, other: str, i: int) -> list[float]:
        return [a[i] - b[i] for a, b in zip(spells[one], spells[other], strict=True)]

    noise = [median_interval(differences("alone again", "alone", i))[1] for i in range(len(METRICS))]
    for text, one, other in (
        ("noise: alone again - alone", "alone again", "alone"),
        ("read - neighbour", "read", "neighbour"),
        ("read - alone", "read", "alone"),
    ):
        told = [_told(differences(one, other, i), max(0.0, noise[i])) for i in range(len(METRICS))]
        print(f"  {text:<27}", "   ".join(f"{name} {found}" for name, found in zip(METRICS, told, strict=True)))


def _spell(target: Target, work: Callable[[], object] | None) -> list[float]:
    target.ask("gaps")
    end = time.monotonic() + SPELL_S
    while time.monotonic() < end:
        if work is None:
            time.sleep(0.05)
        else:
            work()
    return [float(word) for word in target.ask("gaps").split()]


def _told(differences: list[float], noise: float) -> str:
    low, high = median_interval(differences)
    return f"{statistics.median(differences):+.2f} [{low:+.2f}, {high:+.2f}]{' noticed' if low > noise else ''}"


def median_interval(values: list[float]) -> tuple[float, float]:
    """A 95 % interval of the median, by order; the whole range for fewer than six values."""
    ordered, n, tail, outside = sorted(values), len(values), 0.0, 0
    for k in range(n // 2):
        tail += math.comb(n, k) / 2**n
        if tail > 0.025:
            break
        outside = k
    return ordered[outside], ordered[n - 1 - outside]


def actor(repeats: int) -> None:
    import ray

    os.environ.setdefault("RAY_AUTH_MODE", "disabled")
    with tempfile.TemporaryDirectory(prefix="rrb") as folder:
        ray.init(num_cpus=2, include_dashboard=False, _temp_dir=folder, log_to_driver=False)
        try:
            agent = ray.remote(Agent).options(num_cpus=0).remote()
            keep = [agent.episode.remote() for _ in range(8)]
            pid = ray.get(agent.pid.remote(), timeout=120)
            clock, processor, tasks = read(pid, repeats)
            resident = next(line.split()[1] for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
            row("actor + torch", clock, processor, ACTOR_AIM_S, f"; {tasks} tasks, {int(resident) // 1024} MB resident")
            del keep
        finally:
            ray.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--ray", action="store_true")
    arguments = parser.parse_args()
    print(f"cores {len(os.sched_getaffinity(0))}, load {os.getloadavg()[0]:.1f}, target {arguments.python}")
    compare(arguments.python, arguments.repeats)
    notice(arguments.python, arguments.rounds)
    if arguments.ray:
        actor(arguments.repeats)


if __name__ == "__main__":
    main()
