"""A gateway lets two requests run at once; a prompt may call a tool of another server, and a tool may ask the gateway for a grade.

Once all prompts of a round call such tools at the same time: each holds a place at the gateway, and each tool waits for one. In the twin grades
need no place, and a tool is long.
"""

from __future__ import annotations

import asyncio
import os
import sys

import aiohttp
import kit
from aiohttp import web

NO_LIMIT = aiohttp.ClientTimeout(total=None)


def serve(name: str, routes: list[web.RouteDef]) -> None:
    app = web.Application()
    app.add_routes(routes)
    port = kit.free_port()
    kit.mark(name, port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


async def ask(port: int, path: str) -> str:
    async with aiohttp.ClientSession(timeout=NO_LIMIT) as session, session.post(f"http://127.0.0.1:{port}/{path}") as answer:
        return await answer.text()


def gateway() -> None:
    places = asyncio.Semaphore(2)

    async def complete(request: web.Request) -> web.Response:
        step, number = int(request.match_info["step"]), int(request.match_info["number"])
        async with places:
            await asyncio.sleep(kit.pause() * 0.2)
            tools = kit.until_there("tools")["port"]
            return web.Response(text=await ask(tools, f"tool/{step}/{number}"))

    async def grade(_: web.Request) -> web.Response:
        if kit.is_healthy():
            return web.Response(text="1")
        async with places:
            return web.Response(text="1")

    serve("gateway", [web.post("/complete/{step}/{number}", complete), web.post("/grade", grade)])


def tools() -> None:
    gathered = asyncio.Barrier(2)

    async def tool(request: web.Request) -> web.Response:
        step, number = int(request.match_info["step"]), int(request.match_info["number"])
        await asyncio.sleep(kit.pause() * 0.2)
        if kit.is_late(step) and number == 1:
            await asyncio.sleep(kit.LONG_S)
        if kit.differs(step) and number < 2:
            await gathered.wait()
            await ask(kit.until_there("gateway")["port"], "grade")
        elif number == 0:
            async with places_of_tools:
                await asyncio.sleep(0.1)
        return web.Response(text="done")

    places_of_tools = asyncio.Semaphore(4)
    serve("tools", [web.post("/tool/{step}/{number}", tool)])


async def main() -> None:
    for name in ("gateway", "tools"):
        await asyncio.create_subprocess_exec(sys.executable, __file__, name)
    ports = [(await asyncio.to_thread(kit.until_there, name))["port"] for name in ("gateway", "tools")]
    await asyncio.sleep(2)
    for step in range(1, 10**6):
        kit.mark("main", pid=os.getpid())
        await asyncio.gather(*(ask(ports[0], f"complete/{step}/{number}") for number in range(4)))
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] in ("gateway", "tools"):
        {"gateway": gateway, "tools": tools}[sys.argv[1]]()
    else:
        kit.begin()
        asyncio.run(main())
