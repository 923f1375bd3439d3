"""A coroutine runs a child process synchronously.

RRD202
waits for a child process in tool (
of its coroutines cannot run
"""

import asyncio
import subprocess

from ready import soon


async def tool():
    subprocess.run(["sleep", "1000"])


async def main():
    soon()
    await asyncio.sleep(0.4)
    await asyncio.gather(tool(), tool())


asyncio.run(main())
