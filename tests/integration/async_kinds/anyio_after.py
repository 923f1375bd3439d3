"""Coroutines within limits of anyio, which end what they wait for in less than a minute; one of them in a task that waits for others."""

import anyio
from ready import soon


async def moves_on(event):
    with anyio.move_on_after(50):
        await event.wait()


async def fails(event):
    with anyio.fail_after(50):
        await event.wait()


async def main():
    soon()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(moves_on, anyio.Event())
        tasks.start_soon(fails, anyio.Event())


anyio.run(main)
