"""Child processes that do not end.

RRD502
2 coroutines wait at verify (
awaits the end or the output of cat
"""

import asyncio

from ready import soon


async def verify():
    child = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE)
    return await child.wait()


async def main():
    soon()
    await asyncio.gather(verify(), verify())


asyncio.run(main())
