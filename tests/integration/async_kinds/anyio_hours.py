"""Coroutines within limits of anyio of an hour, and without one.

RRD201
Event unset
"""

import anyio
from ready import soon


async def moves_on(event):
    with anyio.move_on_after(3600):
        await event.wait()


async def fails(event):
    with anyio.fail_after(None):
        await event.wait()


async def main():
    soon()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(moves_on, anyio.Event())
        tasks.start_soon(fails, anyio.Event())


anyio.run(main)
