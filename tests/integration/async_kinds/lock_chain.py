"""A lock is held by a task that waits for another lock, whose holder waits for an event.

RRD201
1 of 7 coroutines
waits at b (
Event unset; 6 more
"""

import asyncio

from ready import soon


async def a(first, second):
    async with first:
        await asyncio.sleep(0.01)
        async with second:
            pass


async def b(second):
    async with second:
        await asyncio.Event().wait()


async def c(first):
    async with first:
        pass


async def main():
    first, second = asyncio.Lock(), asyncio.Lock()
    soon()
    await asyncio.gather(a(first, second), b(second), *(c(first) for _ in range(4)))


asyncio.run(main())
