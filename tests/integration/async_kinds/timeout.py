"""Time limits of hours: a timeout, a shield and wait_for.

RRD201
waits at call (
Event unset
"""

import asyncio

from ready import soon


async def call(event):
    async with asyncio.timeout(3600):
        await event.wait()


async def main():
    soon()
    await asyncio.wait_for(asyncio.shield(call(asyncio.Event())), 7200)


asyncio.run(main())
