"""One request has httpx's only connection; the others wait for it.

RRD502
1 coroutine waits at tool (
awaits an answer of
"""

import asyncio

import httpx
from ready import silent_server, soon

port = silent_server()


async def tool(client):
    return await client.get(f"http://127.0.0.1:{port}/")


async def main():
    soon()
    async with httpx.AsyncClient(timeout=None, limits=httpx.Limits(max_connections=1)) as client:
        await asyncio.gather(*(tool(client) for _ in range(4)))


asyncio.run(main())
