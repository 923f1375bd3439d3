"""Coroutines have answers judged in a pool of processes."""

from __future__ import annotations

import asyncio
import subprocess
from concurrent.futures import ProcessPoolExecutor

import kit


def judge(step: int, n: int) -> int:
    if n == 1 and kit.differs(step):
        kit.mark("judge")
        return run_checker()
    kit.work(0.4)
    return n


def run_checker() -> int:
    """A checker that waits for a line that nobody types."""
    checker = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    kit.mark("checker", pid=checker.pid)
    assert checker.stdout is not None
    return len(checker.stdout.readline())


async def rollouts() -> None:
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(3) as pool:
        for step in range(1, 10**6):
            kit.mark("main")
            await asyncio.gather(*(loop.run_in_executor(pool, judge, step, n) for n in range(3)))
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    asyncio.run(rollouts())
