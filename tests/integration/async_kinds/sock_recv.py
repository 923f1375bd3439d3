"""A bare socket from which nothing comes.

RRD201
waits at main (
a socket
"""

import asyncio
import socket

from ready import soon


async def main():
    silent, _other = socket.socketpair()
    silent.setblocking(False)
    soon()
    await asyncio.get_running_loop().sock_recv(silent, 10)


asyncio.run(main())
