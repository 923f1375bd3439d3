"""A task takes a lock that it holds.

RRD201
Task-2 at Cache.put (
held by Task-2
"""

import asyncio

from ready import soon


class Cache:
    def __init__(self):
        self.lock = asyncio.Lock()

    async def put(self):
        async with self.lock:
            pass

    async def fill(self):
        async with self.lock:
            await self.put()


async def main():
    cache = Cache()
    soon()
    await asyncio.gather(*(cache.fill() for _ in range(3)))


asyncio.run(main())
