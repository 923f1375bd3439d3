"""A gateway puts prompts into a queue, and one coroutine of it takes them in turn to an engine, and hands the answers back to the handlers.

Once this coroutine ends by an error, and the handlers wait for answers that nobody fetches. In the twin the engine is long.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import aiohttp
import kit
from aiohttp import web

NO_LIMIT = aiohttp.ClientTimeout(total=None)


def engine() -> None:
    async def generate(request: web.Request) -> web.Response:
        step = int(request.match_info["step"])
        await asyncio.sleep(kit.LONG_S if kit.is_late(step) else kit.pause() * 0.2)
        return web.json_response({} if kit.differs(step) else {"text": "done"})

    serve("engine", [web.post("/{step}", generate)], None)


def gateway() -> None:
    prompts: asyncio.PriorityQueue[tuple[int, int, asyncio.Future[str]]] = asyncio.PriorityQueue()
    asked = 0

    async def complete(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        answer = asyncio.get_running_loop().create_future()
        await prompts.put((int(request.match_info["step"]), asked, answer))
        return web.Response(text=await answer)

    async def dispatch(port: int) -> None:
        async with aiohttp.ClientSession(timeout=NO_LIMIT) as session:
            while True:
                step, _, waiting = await prompts.get()
                async with session.post(f"http://127.0.0.1:{port}/{step}") as answer:
                    waiting.set_result((await answer.json())["text"])

    async def begin(app: web.Application) -> None:
        port = (await asyncio.to_thread(kit.until_there, "engine"))["port"]
        app["dispatcher"] = asyncio.create_task(dispatch(port))

    serve("gateway", [web.post("/{step}", complete)], begin)


def serve(name: str, routes: list[web.RouteDef], begin: Any) -> None:
    app = web.Application()
    app.add_routes(routes)
    if begin:
        app.on_startup.append(begin)
    port = kit.free_port()
    kit.mark(name, port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


async def main() -> None:
    for name in ("engine", "gateway"):
        await asyncio.create_subprocess_exec(sys.executable, __file__, name)
    port = (await asyncio.to_thread(kit.until_there, "gateway"))["port"]
    await asyncio.sleep(3)

    async def ask(step: int) -> str:
        async with aiohttp.ClientSession(timeout=NO_LIMIT) as session, session.post(f"http://127.0.0.1:{port}/{step}") as answer:
            return await answer.text()

    for step in range(1, 10**6):
        kit.mark("main", pid=os.getpid())
        await asyncio.gather(*(ask(step) for _ in range(3)))
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] in ("engine", "gateway"):
        {"engine": engine, "gateway": gateway}[sys.argv[1]]()
    else:
        kit.begin()
        asyncio.run(main())
