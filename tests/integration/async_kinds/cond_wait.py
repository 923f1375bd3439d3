"""Nobody notifies a condition.

RRD201
3 of 4 coroutines
wait at taker (
for Condition
"""

import asyncio

from ready import soon


async def taker(condition):
    async with condition:
        await condition.wait_for(lambda: False)


async def main():
    condition = asyncio.Condition()
    soon()
    await asyncio.gather(*(taker(condition) for _ in range(3)))


asyncio.run(main())
