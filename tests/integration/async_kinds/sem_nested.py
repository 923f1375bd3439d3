"""Every holder of a permit wants another one of the same semaphore.

RRD201
3 of 9 coroutines
wait for each other
Semaphore with 0 permits
6 more
"""

import asyncio

from ready import soon


async def call(permits):
    async with permits:
        pass


async def episode(permits):
    async with permits:
        await asyncio.sleep(0.05)
        await call(permits)


async def main():
    permits = asyncio.Semaphore(3)
    soon()
    await asyncio.gather(*(episode(permits) for _ in range(8)))


asyncio.run(main())
