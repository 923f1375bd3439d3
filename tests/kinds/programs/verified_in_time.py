"""A reward loop has answers verified in a pool of two processes and tries an answer again, without an end, whenever no result comes in time.

A verifier gives its own thread a second; but leaving the block of that thread waits for it all the same. An answer that never ends takes one
process with each try, until none is left. In the twin such an answer takes half a minute and ends.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import multiprocessing as mp
import os
import time

import kit


def parse(number: int, is_odd: bool) -> float:
    if is_odd:
        with open(kit.fifo("rules")) as rules:
            rules.read()
    if kit.is_late(number) and number % 3 == 0:
        time.sleep(kit.LONG_S)
    kit.work(0.3)
    return 1.0


def verify(number: int, is_odd: bool) -> float:
    names = [f"verifier{n}" for n in range(2)]
    mine = next((name for name in names if _is_mine(name)), None)
    if mine is None:
        mine = next(name for name in names if not (kit.folder() / f"{name}.json").exists())
    kit.mark(mine)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        return threads.submit(parse, number, is_odd).result(timeout=1.0 if is_odd else None)


def _is_mine(name: str) -> bool:
    try:
        return bool(kit.until_there(name, 0.01)["pid"] == os.getpid())
    except TimeoutError:
        return False


async def main() -> None:
    loop = asyncio.get_running_loop()
    with concurrent.futures.ProcessPoolExecutor(2, mp.get_context("spawn")) as pool:

        async def reward(number: int) -> float:
            is_odd = kit.differs(number)
            while True:
                try:
                    result = loop.run_in_executor(pool, verify, number, is_odd)
                    return await asyncio.wait_for(result, None if kit.is_healthy() else 4.0)
                except (asyncio.TimeoutError, concurrent.futures.TimeoutError):
                    await asyncio.sleep(0.5)

        for number in range(1, 10**6):
            await asyncio.gather(reward(number), asyncio.sleep(0.1))
            kit.mark("main")
            kit.step(number)


if __name__ == "__main__":
    kit.begin()
    asyncio.run(main())
