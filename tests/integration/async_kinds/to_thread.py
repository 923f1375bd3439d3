"""Worker threads want a lock that the main thread took.

RRD201
3 of 4 coroutines
wait at reward (
waits for a lock in score (
"""

import asyncio
import threading

from ready import soon

lock = threading.Lock()


def score():
    with lock:
        pass


async def reward():
    await asyncio.to_thread(score)


async def main():
    lock.acquire()
    soon()
    await asyncio.gather(*(reward() for _ in range(3)))


asyncio.run(main())
