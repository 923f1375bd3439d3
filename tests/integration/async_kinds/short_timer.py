"""A timer, which is no task, will set the event in half a minute."""

import asyncio

from ready import soon


async def main():
    event = asyncio.Event()
    soon()
    await asyncio.sleep(0.5)
    asyncio.get_running_loop().call_later(30, event.set)
    await event.wait()


asyncio.run(main())
