"""Two locks in opposite order.

RRD201
2 of 4 coroutines
wait for each other
held by Task-2 at a (
held by Task-3 at a (
2 more
"""

import asyncio

from ready import soon


async def a(first, second):
    async with first:
        await asyncio.sleep(0.05)
        async with second:
            pass


async def main():
    first, second = asyncio.Lock(), asyncio.Lock()
    soon()
    await asyncio.gather(a(first, second), a(second, first), a(first, second))


asyncio.run(main())
