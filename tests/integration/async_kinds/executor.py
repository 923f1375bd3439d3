"""Worker threads that read from a silent socket.

RRD502
waits at a socket in score (
"""

import asyncio
import socket

from ready import soon


def score():
    silent, _other = socket.socketpair()
    silent.recv(1)


async def reward():
    await asyncio.get_running_loop().run_in_executor(None, score)


async def main():
    soon()
    await asyncio.gather(*(reward() for _ in range(3)))


asyncio.run(main())
