"""A lock of anyio, whose holder awaits an event.

RRD201
1 of 6 coroutines
waits at hold (
Event unset; 5 more
"""

import anyio
from ready import soon


async def hold(lock, event):
    async with lock:
        await event.wait()


async def want(lock):
    async with lock:
        pass


async def main():
    lock, event = anyio.Lock(), anyio.Event()
    async with anyio.create_task_group() as group:
        soon()
        group.start_soon(hold, lock, event)
        await anyio.sleep(0.05)
        for _ in range(4):
            group.start_soon(want, lock)


anyio.run(main)
