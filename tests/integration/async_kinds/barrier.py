"""A barrier that one party never reaches.

RRD201
3 of 4 coroutines
wait at episode (
Barrier 3 of 4
"""

import asyncio

from ready import soon


async def episode(barrier):
    async with barrier:
        pass


async def main():
    soon()
    barrier = asyncio.Barrier(4)
    await asyncio.gather(*(episode(barrier) for _ in range(3)))


asyncio.run(main())
