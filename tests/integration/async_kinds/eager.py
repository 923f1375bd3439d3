"""Tasks that began eagerly.

RRD201
3 of 4 coroutines
wait at episode (
Event unset
"""

import asyncio

from ready import soon


async def episode(event):
    await event.wait()


async def main():
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    soon()
    event = asyncio.Event()
    await asyncio.gather(*(asyncio.create_task(episode(event)) for _ in range(3)))


asyncio.run(main())
