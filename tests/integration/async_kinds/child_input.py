"""A coroutine writes to a child process and reads nothing of what that prints.

RRD502
waits at feed (
for child pid
"""

import asyncio

from ready import soon


async def feed():
    child = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    child.stdin.write(b"word " * 10**6)
    await child.stdin.drain()


async def main():
    soon()
    await feed()


asyncio.run(main())
