"""Four agents ask a tool server over one client that has two connections."""

from __future__ import annotations

import asyncio
import sys

import aiohttp
import kit
from aiohttp import web

KEPT: list[aiohttp.ClientResponse] = []


async def run_tool(request: web.Request) -> web.Response:
    await asyncio.sleep(kit.pause() * 0.2)
    return web.Response(body=b"x" * 5_000_000)


def serve() -> None:
    app = web.Application()
    app.router.add_get("/tool", run_tool)
    port = kit.free_port()
    kit.mark("server", port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


async def ask() -> None:
    await asyncio.create_subprocess_exec(sys.executable, __file__, "serve")
    port = (await asyncio.to_thread(kit.until_there, "server"))["port"]
    await asyncio.sleep(2)
    connector = aiohttp.TCPConnector(limit=2)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as session:

        async def agent(n: int) -> None:
            for step in range(1, 10**6):
                answer = await session.get(f"http://127.0.0.1:{port}/tool")
                if kit.differs(step) and n < 2:
                    KEPT.append(answer)
                    kit.mark("main")
                    continue
                await answer.read()
                kit.step(step)

        await asyncio.gather(*(agent(n) for n in range(4)))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        asyncio.run(ask())
