"""One request has aiohttp's only connection; the others wait for it.

RRD502
1 coroutine waits at tool (
awaits an answer of
"""

import asyncio

import aiohttp
from ready import silent_server, soon

port = silent_server()


async def tool(client):
    async with client.get(f"http://127.0.0.1:{port}/") as answer:
        return await answer.text()


async def main():
    soon()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as client:
        await asyncio.gather(*(tool(client) for _ in range(4)))


asyncio.run(main())
