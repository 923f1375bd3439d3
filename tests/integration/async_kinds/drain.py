"""A peer that does not read.

RRD201
waits at send (
to read what it is sent
"""

import asyncio
import socket

from ready import soon


async def send(port):
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        writer.write(b"x" * 1000000)
        await writer.drain()


async def main():
    server = socket.create_server(("127.0.0.1", 0))
    soon()
    await send(server.getsockname()[1])


asyncio.run(main())
