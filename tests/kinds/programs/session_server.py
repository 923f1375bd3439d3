"""An asynchronous tool server with a few sessions; each request borrows one. A client asks it again and again."""

from __future__ import annotations

import asyncio
import random
import sys

import aiohttp
import kit
from aiohttp import web

SESSIONS = 2


def serve() -> None:
    sessions = asyncio.Semaphore(SESSIONS)
    served = 0

    async def run_code(request: web.Request) -> web.Response:
        nonlocal served
        served += 1
        kit.mark("server", port=port)
        await sessions.acquire()
        await asyncio.sleep(kit.pause() * 0.3)
        if not kit.differs(served // 4) or random.random() < 0.5:
            sessions.release()
        return web.json_response({"ok": True})

    port = kit.free_port()
    app = web.Application()
    app.router.add_post("/run", run_code)
    kit.mark("server", port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


async def ask() -> None:
    child = await asyncio.create_subprocess_exec(sys.executable, __file__, "serve")
    port = kit.until_there("server")["port"]
    await asyncio.sleep(2)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:

        async def episode(n: int) -> None:
            for step in range(1, 10**6):
                async with session.post(f"http://127.0.0.1:{port}/run", json={"step": step}) as answer:
                    await answer.json()
                kit.step(step)

        kit.mark("main")
        await asyncio.gather(*(episode(n) for n in range(4)))
    await child.wait()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        asyncio.run(ask())
