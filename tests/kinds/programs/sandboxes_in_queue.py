"""A tool server hands sandboxes from a queue to its handlers; the coroutine that makes them raises and nobody awaits it. Other paths are answered."""

import asyncio
import contextlib
import subprocess
import sys

import aiohttp
from aiohttp import web
from kit import begin, differs, free_port, mark, pause, step, until_there


async def make(boxes: "asyncio.Queue[int]") -> None:
    for number in range(10**6):
        await asyncio.sleep(pause() * 0.3)
        if differs(number // 2):
            raise RuntimeError("no image of that name")
        await boxes.put(number)


def serve(port: int) -> None:
    boxes: asyncio.Queue[int] = asyncio.Queue(2)
    keep: list[asyncio.Task[None]] = []

    async def on_start(_: web.Application) -> None:
        keep.append(asyncio.create_task(make(boxes)))
        mark("tools")

    async def sandbox(_: web.Request) -> web.Response:
        return web.Response(text=str(await boxes.get()))

    async def health(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    app = web.Application()
    app.on_startup.append(on_start)
    app.router.add_get("/sandbox", sandbox)
    app.router.add_get("/health", health)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


async def look(session: aiohttp.ClientSession, port: int) -> None:
    while True:
        with contextlib.suppress(aiohttp.ClientError):
            await ask(session, port, "health")
        await asyncio.sleep(0.4)


async def ask(session: aiohttp.ClientSession, port: int, path: str) -> str:
    async with session.get(f"http://127.0.0.1:{port}/{path}") as answer:
        return await answer.text()


async def run(port: int) -> None:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        looking = asyncio.create_task(look(session, port))
        await asyncio.sleep(1)
        for number in range(10**6):
            await asyncio.gather(*(ask(session, port, "sandbox") for _ in range(2)))
            await asyncio.sleep(pause() * 0.2)
            step(number)
        looking.cancel()


def main() -> None:
    begin()
    port = free_port()
    subprocess.Popen([sys.executable, __file__, "serve", str(port)])
    until_there("tools")
    asyncio.run(run(port))


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
else:
    main()
