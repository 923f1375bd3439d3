"""A controller sends prompts to two rollout servers in turn until it has a batch, and then tells both the next version. Rejected ones go to the
next.

Each server admits by a count of its own, scaled down to its share of the batch. Once one rejects an answer, so that the other gets one more than
its share: that one admits nobody before the next version. In the twin the servers admit all, and some prompts take long.
"""

from __future__ import annotations

import asyncio
import os
import sys

import aiohttp
import kit
from aiohttp import web

BATCH = 4


def serve(name: str) -> None:
    accepted, version = 0, 0
    share = 10**9 if kit.is_healthy() else BATCH // 2

    async def rollout(request: web.Request) -> web.Response:
        nonlocal accepted
        asked = await request.json()
        while accepted >= (version + 1) * share:
            await asyncio.sleep(0.2)
        is_late = kit.is_late(version) and asked["number"] == 1
        await asyncio.sleep(kit.LONG_S if is_late else kit.pause() * 0.3)
        if asked["is_odd"]:
            return web.json_response({"score": None})
        accepted += 1
        return web.json_response({"score": 1.0})

    async def renew(request: web.Request) -> web.Response:
        nonlocal version
        version = (await request.json())["version"]
        return web.json_response({})

    app = web.Application()
    app.add_routes([web.post("/rollout", rollout), web.post("/version", renew)])
    port = kit.free_port()
    kit.mark(name, port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


async def main() -> None:
    for name in ("worker0", "worker1"):
        await asyncio.create_subprocess_exec(sys.executable, __file__, "serve", name)
    ports = [(await asyncio.to_thread(kit.until_there, name))["port"] for name in ("worker0", "worker1")]
    await asyncio.sleep(2)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:

        async def ask(at: int, path: str, **more: object) -> dict[str, object]:
            async with session.post(f"http://127.0.0.1:{ports[at % 2]}/{path}", json=more) as answer:
                return dict(await answer.json())

        async def play(number: int, step: int) -> None:
            is_odd = number == 1 and kit.differs(step)
            if (await ask(number, "rollout", number=number, is_odd=is_odd))["score"] is None:
                await ask(number + 1, "rollout", number=number, is_odd=False)

        for step in range(1, 10**6):
            await asyncio.gather(*(play(number, step) for number in range(BATCH)))
            for at in range(2):
                await ask(at, "version", version=step)
            kit.mark("main", pid=os.getpid())
            kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        kit.begin()
        asyncio.run(main())
