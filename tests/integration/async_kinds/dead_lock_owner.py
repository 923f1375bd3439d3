"""The task that took a lock died without releasing it.

RRD201
4 of 5 coroutines
wait at take (
no coroutine is left that could release it
"""

import asyncio

from ready import soon


async def refill(lock):
    await lock.acquire()
    raise RuntimeError("no release")


async def take(lock):
    async with lock:
        pass


async def main():
    lock = asyncio.Lock()
    soon()
    await asyncio.gather(refill(lock), *(take(lock) for _ in range(4)), return_exceptions=True)


asyncio.run(main())
