"""A limiter of anyio whose token went to somebody who never gives it back.

RRD201
4 of 5 coroutines
wait at episode (
CapacityLimiter with 0 permits: no coroutine is left
"""

import anyio
from ready import soon


async def episode(lock):
    async with lock:
        raise AssertionError


async def main():
    lock = anyio.CapacityLimiter(1)
    lock.acquire_on_behalf_of_nowait(object())
    async with anyio.create_task_group() as group:
        soon()
        for _ in range(4):
            group.start_soon(episode, lock)


anyio.run(main)
