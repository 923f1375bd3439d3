"""Agents play in the threads of a loop and ask the loop for answers, which are looked up in the same threads; the trainer reads what they print."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import kit

AGENTS = 6


def look_up(step: int) -> int:
    kit.work(0.1)
    return step


async def answer(step: int) -> int:
    return await asyncio.to_thread(look_up, step)


def play(step: int, loop: asyncio.AbstractEventLoop) -> int:
    kit.mark("rollout")
    kit.work(0.1)
    return asyncio.run_coroutine_threadsafe(answer(step), loop).result()


async def tell_progress() -> None:
    while True:
        await asyncio.sleep(1)
        (kit.folder() / "progress").write_text("playing")


async def run_agents() -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(4))
    told = asyncio.create_task(tell_progress())
    for step in range(1, 10**6):
        at_once = asyncio.Semaphore(AGENTS if kit.differs(step) else 2)

        async def agent(step: int = step, at_once: asyncio.Semaphore = at_once) -> int:
            async with at_once:
                return await loop.run_in_executor(None, play, step, loop)

        await asyncio.gather(*(agent() for _ in range(AGENTS)))
        print(step, flush=True)
    await told


def train() -> None:
    rollout = subprocess.Popen([sys.executable, __file__, "rollout"], stdout=subprocess.PIPE)
    assert rollout.stdout is not None
    for line in rollout.stdout:
        kit.mark("main")
        kit.work(0.2)
        kit.step(int(line))


if __name__ == "__main__":
    if sys.argv[1] == "rollout":
        asyncio.run(run_agents())
    else:
        kit.begin()
        train()
