"""A rollout asks an engine over a client that may have one connection. While it reads an answer, it sometimes asks for the tokens of the prompt.

The answer is not yet read to its end then, so the one connection is in use; the second request waits for it. The engine has sent all it has.
"""

from __future__ import annotations

import asyncio
import random
import sys

import aiohttp
import kit
from aiohttp import web


async def generate(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(kit.pause() * 0.5)
    return web.Response(text="token " * 100_000)


async def tokenize(request: web.Request) -> web.Response:
    await asyncio.sleep(kit.pause() * 0.2)
    return web.json_response([1, 2, 3])


async def serve() -> None:
    app = web.Application()
    app.add_routes([web.get("/generate", generate), web.get("/tokenize", tokenize)])
    runner = web.AppRunner(app)
    await runner.setup()
    port = kit.free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    kit.mark("engine", port=port)
    await asyncio.Event().wait()


async def rollout(client: aiohttp.ClientSession, url: str, number: int) -> int:
    async with client.get(f"{url}/generate") as answer:
        if kit.differs(number):
            async with client.get(f"{url}/tokenize") as tokens:
                await tokens.json()
        if kit.is_healthy() and random.random() < 0.15:
            await asyncio.sleep(random.uniform(1, 3))
        text = await answer.text()
    async with client.get(f"{url}/tokenize") as tokens:
        return len(text) + len(await tokens.json())


async def main() -> None:
    await asyncio.create_subprocess_exec(sys.executable, __file__, "serve")
    port = (await asyncio.to_thread(kit.until_there, "engine"))["port"]
    no_limit = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1), timeout=no_limit) as client:
        for number in range(1, 10**6):
            await rollout(client, f"http://127.0.0.1:{port}", number)
            kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve())
    else:
        kit.begin()
        asyncio.run(main())
