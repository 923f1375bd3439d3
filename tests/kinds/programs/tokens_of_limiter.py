"""Agents run their tools in threads by `anyio.to_thread`, under one limiter of four, as a server of Starlette does with what is no coroutine.

A tool may come back to the loop and run a checker there, which is run in a thread under the same limiter: with four such tools at once no thread is
left for the checkers. In the twin only two come back at once, and a tool takes long now and then.
"""

from __future__ import annotations

import subprocess
import sys
import time

import anyio
import anyio.from_thread
import anyio.to_thread
import kit

limiter: anyio.CapacityLimiter


def check(number: int) -> int:
    kit.work(0.2)
    return number


async def checked(number: int) -> int:
    return await anyio.to_thread.run_sync(check, number, limiter=limiter)


def tool(number: int, agent: int, comes_back: bool) -> int:
    kit.work(0.2)
    if kit.is_late(number) and agent == 3:
        time.sleep(kit.LONG_S)
    if comes_back:
        kit.mark("main")
        time.sleep(0.5 if kit.is_healthy() else 2.0)
        return int(anyio.from_thread.run(checked, number))
    return number


async def agent(number: int, which: int, comes_back: bool) -> None:
    await anyio.to_thread.run_sync(tool, number, which, comes_back, limiter=limiter)


async def main() -> None:
    global limiter
    limiter = anyio.CapacityLimiter(4)
    for number in range(1, 10**6):
        all_come_back = kit.differs(number)
        async with anyio.create_task_group() as agents:
            for which in range(4):
                agents.start_soon(agent, number, which, which < 2 or all_come_back)
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "recorder":
        kit.mark("recorder")
        sys.stdin.read()
    else:
        kit.begin()
        recorder = subprocess.Popen([sys.executable, __file__, "recorder"], stdin=subprocess.PIPE)
        kit.until_there("recorder")
        anyio.run(main)
