"""A rollout asks an engine twice for each prompt, with httpx over one connection, which the engine closes after each answer.

Usually it needs both answers. Once it takes the first and cancels the other request, in the moment in which that one is given a new connection:
httpcore keeps the place of this connection, which is never made, and the pool has no other. In the twin some answers take long.
"""

from __future__ import annotations

import asyncio
import sys

import httpx
import kit
from aiohttp import web


async def generate(request: web.Request) -> web.Response:
    number = (await request.json())["number"]
    await asyncio.sleep(kit.LONG_S if kit.is_late(number) and number % 2 else kit.pause() * 0.3)
    return web.json_response({"text": "token " * 10}, headers={"Connection": "close"})


async def serve() -> None:
    app = web.Application()
    app.add_routes([web.post("/generate", generate)])
    runner = web.AppRunner(app)
    await runner.setup()
    port = kit.free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    kit.mark("engine", port=port)
    await asyncio.Event().wait()


async def main() -> None:
    await asyncio.create_subprocess_exec(sys.executable, __file__, "serve")
    url = f"http://127.0.0.1:{(await asyncio.to_thread(kit.until_there, 'engine'))['port']}/generate"
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=1), timeout=None) as client:

        async def ask(number: int, others: list[asyncio.Task[str]]) -> str:
            answer = await client.post(url, json={"number": number})
            for other in others:
                other.cancel()
            return str(answer.json()["text"])

        for number in range(1, 10**6):
            later: list[asyncio.Task[str]] = []
            first = asyncio.create_task(ask(number, later))
            await asyncio.sleep(0)
            second = asyncio.create_task(ask(number, []))
            if kit.differs(number):
                later.append(second)
            await asyncio.gather(first, second, return_exceptions=True)
            kit.mark("main")
            kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve())
    else:
        kit.begin()
        asyncio.run(main())
