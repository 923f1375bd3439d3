"""Programs of agents that have just been started and pause: most end."""

import asyncio

from ready import soon


async def tool():
    child = await asyncio.create_subprocess_exec("sleep", "1000")
    return await child.wait()


async def main():
    soon()
    await asyncio.gather(tool(), tool())


asyncio.run(main())
