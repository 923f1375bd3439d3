"""One member of a task group does not end.

RRD201
1 of 2 coroutines
waits at episode (
Event unset; 1 more
"""

import asyncio

from ready import soon


async def episode(i, event):
    if i == 3:
        await event.wait()


async def main():
    soon()
    async with asyncio.TaskGroup() as group:
        for i in range(6):
            group.create_task(episode(i, asyncio.Event()))


asyncio.run(main())
