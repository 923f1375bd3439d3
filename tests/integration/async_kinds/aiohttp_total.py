"""Requests of aiohttp to a server that does not answer, each within a time limit that the program has set."""

import asyncio

import aiohttp
from ready import silent_server, soon

port = silent_server()


async def tool(client):
    async with client.get(f"http://127.0.0.1:{port}/", timeout=aiohttp.ClientTimeout(total=50)) as answer:
        return await answer.text()


async def main():
    soon()
    async with aiohttp.ClientSession() as client:
        await asyncio.gather(*(tool(client) for _ in range(4)))


asyncio.run(main())
