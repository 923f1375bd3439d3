"""A server whose backlog is full.

RRD201
2 of 3 coroutines
wait at call (
for a connection to 127.0.0.1:
"""

import asyncio
import socket

from ready import soon


async def call(port):
    await asyncio.open_connection("127.0.0.1", port)


async def main():
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(0)
    port = server.getsockname()[1]
    keep = []
    for _ in range(3):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", port))
        keep.append(client)
    soon()
    await asyncio.gather(call(port), call(port))


asyncio.run(main())
