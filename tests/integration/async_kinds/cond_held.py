"""One task keeps a condition's lock while it awaits a future; the others cannot enter.

RRD201
1 of 5 coroutines
waits at refill (
for Future; 4 more wait behind it
"""

import asyncio

from ready import soon


async def refill(condition):
    async with condition:
        await asyncio.get_running_loop().create_future()


async def taker(condition):
    async with condition:
        await condition.wait()


async def main():
    condition = asyncio.Condition()
    soon()
    await asyncio.gather(refill(condition), *(taker(condition) for _ in range(3)))


asyncio.run(main())
