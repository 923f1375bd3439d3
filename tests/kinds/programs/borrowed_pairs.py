"""A server of coroutines lends its four connections; a request that copies needs two of them."""

from __future__ import annotations

import asyncio
import sys

import aiohttp
import kit
from aiohttp import web

COPIES = 4


class Connections:
    def __init__(self) -> None:
        self.free: asyncio.Queue[int] = asyncio.Queue()
        for n in range(COPIES):
            self.free.put_nowait(n)
        self.pairs = asyncio.Lock()
        self.step = 0

    async def copy(self, request: web.Request) -> web.Response:
        self.step += 1
        kit.mark("server", port=PORT)
        if kit.differs(self.step // COPIES):
            source = await self.free.get()
            await asyncio.sleep(1)
            target = await self.free.get()
        else:
            async with self.pairs:
                source, target = await self.free.get(), await self.free.get()
        await asyncio.sleep(kit.pause() * 0.3)
        for one in (source, target):
            self.free.put_nowait(one)
        return web.json_response({"copied": self.step})


PORT = kit.free_port()


def serve() -> None:
    app = web.Application()

    async def begin(app: web.Application) -> None:
        app.router.add_get("/copy", Connections().copy)

    app.on_startup.append(begin)
    kit.mark("server", port=PORT)
    web.run_app(app, host="127.0.0.1", port=PORT, print=None)


async def ask() -> None:
    await asyncio.create_subprocess_exec(sys.executable, __file__, "serve")
    port = (await asyncio.to_thread(kit.until_there, "server"))["port"]
    await asyncio.sleep(2)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        for step in range(1, 10**6):
            kit.mark("main")

            async def one() -> None:
                async with session.get(f"http://127.0.0.1:{port}/copy") as answer:
                    await answer.read()

            await asyncio.gather(*(one() for _ in range(COPIES)))
            kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        asyncio.run(ask())
