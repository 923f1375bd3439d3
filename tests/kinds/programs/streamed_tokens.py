"""A server streams tokens; one coroutine makes them for all requests and tells whoever waits. A client reads, and asks whether it is well."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator

import kit
from aiohttp import web


class Engine:
    def __init__(self) -> None:
        self.told = asyncio.Condition()
        self.wanted: dict[int, int] = {}

    async def run(self) -> None:
        while True:
            await asyncio.sleep(kit.pause() * 0.3)
            if any(kit.differs(step) for step in self.wanted):
                kit.mark("server")
                raise MemoryError("no block is free")
            async with self.told:
                self.wanted = {step: made + 1 for step, made in self.wanted.items()}
                self.told.notify_all()

    async def tokens(self, step: int) -> AsyncIterator[int]:
        self.wanted[step] = 0
        for n in range(1, 6):
            async with self.told:
                await self.told.wait_for(lambda n=n: self.wanted[step] >= n)
            yield n
        del self.wanted[step]


async def generate(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    async for token in request.app["engine"].tokens(int(request.query["step"])):
        await answer.write(f"{token}\n".encode())
    return answer


async def health(_: web.Request) -> web.Response:
    return web.Response(text="well")


async def serve(port: int) -> None:
    app = web.Application()
    app["engine"] = Engine()
    app.add_routes([web.get("/generate", generate), web.get("/health", health)])
    running = asyncio.create_task(app["engine"].run())
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    kit.mark("server")
    await asyncio.wait([running])
    await asyncio.Event().wait()


def ask(address: str) -> None:
    import requests

    while True:
        requests.get(f"{address}/health", timeout=60)
        time.sleep(0.5)


if __name__ == "__main__":
    if "serve" in sys.argv:
        asyncio.run(serve(int(sys.argv[2])))
    else:
        import requests

        kit.begin()
        port = kit.free_port()
        subprocess.Popen([sys.executable, __file__, "serve", str(port)])
        kit.until_there("server")
        address = f"http://127.0.0.1:{port}"
        threading.Thread(target=ask, args=(address,), daemon=True, name="health").start()
        for step in range(1, 10**6):
            with requests.get(f"{address}/generate", params={"step": step}, stream=True) as answer:
                list(answer.iter_lines())
            kit.step(step)
