"""Async generators over a queue that nobody fills.

RRD201
3 of 4 coroutines
wait at stream (
Queue.get empty
"""

import asyncio

from ready import soon


async def stream(queue):
    while True:
        yield await queue.get()


async def read(queue):
    async for _ in stream(queue):
        pass


async def main():
    soon()
    queue = asyncio.Queue()
    await asyncio.gather(*(read(queue) for _ in range(3)))


asyncio.run(main())
