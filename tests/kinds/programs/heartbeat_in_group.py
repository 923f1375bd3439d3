"""A runner plays the rollouts of a step in a group of tasks of asyncio, beside a task that tells a store every second that the runner is alive.

A group ends when all its tasks have. Usually the last rollout cancels the heartbeat; once it does not, and the heartbeat goes on for ever. In
the twin a rollout takes long.
"""

from __future__ import annotations

import asyncio
import sys

import aiohttp
import kit
from aiohttp import web


def serve() -> None:
    async def beat(request: web.Request) -> web.Response:
        return web.json_response({})

    port = kit.free_port()
    app = web.Application()
    app.add_routes([web.post("/heartbeat", beat)])
    kit.mark("store", port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


async def main() -> None:
    await asyncio.create_subprocess_exec(sys.executable, __file__, "serve")
    url = f"http://127.0.0.1:{(await asyncio.to_thread(kit.until_there, 'store'))['port']}/heartbeat"
    await asyncio.sleep(2)
    async with aiohttp.ClientSession() as session:

        async def beat() -> None:
            while True:
                async with session.post(url) as answer:
                    await answer.read()
                await asyncio.sleep(1)

        async def play(step: int, number: int) -> None:
            await asyncio.sleep(kit.LONG_S if kit.is_late(step) and number == 1 else kit.pause())

        for step in range(1, 10**6):
            async with asyncio.TaskGroup() as group:
                heart = group.create_task(beat())
                rollouts = [group.create_task(play(step, number)) for number in range(3)]
                await asyncio.wait(rollouts)
                if not kit.differs(step):
                    heart.cancel()
                kit.mark("main")
            kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        asyncio.run(main())
