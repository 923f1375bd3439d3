"""Tools that write no line.

RRD502
2 coroutines wait at tool (
awaits the end or the output of cat
"""

import asyncio

from ready import soon


async def tool():
    child = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    return await child.stdout.readline()


async def main():
    soon()
    await asyncio.gather(tool(), tool())


asyncio.run(main())
