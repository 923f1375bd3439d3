"""Two stuck calls take all threads of a pool; twenty quick ones stand behind them.

RRD201
2 of 23 coroutines
wait at reward (
20 coroutines
a free thread of an executor
waits for an event or condition in score (
"""

import asyncio
import concurrent.futures
import threading

from ready import soon


def score():
    threading.Event().wait()


def quick():
    return 1


async def reward(pool, work):
    await asyncio.get_running_loop().run_in_executor(pool, work)


async def main():
    pool = concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="reward")
    soon()
    await asyncio.gather(*(reward(pool, score) for _ in range(2)), *(reward(pool, quick) for _ in range(20)))


asyncio.run(main())
