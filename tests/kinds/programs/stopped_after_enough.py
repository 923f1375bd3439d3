"""Four coroutines play and put their episodes into a queue of two; the trainer takes six of them, then waits until all who play have ended.

Those who play end after two episodes each: eight, two of which find room. Once they play three each: who has no room waits for the trainer, which
takes no more. In the twin a game asks a slow engine. Games are played at an engine over HTTP.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

import aiohttp
import kit
from aiohttp import web


async def generate(request: web.Request) -> web.Response:
    await asyncio.sleep(kit.pause() * 0.1)
    if request.query["player"] == "2" and kit.is_late(int(request.query["step"])):
        await asyncio.sleep(kit.LONG_S)
    return web.Response(text="e2e4")


async def serve() -> None:
    app = web.Application()
    app.router.add_get("/", generate)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    kit.mark("engine", port=runner.addresses[0][1])
    await asyncio.Event().wait()


async def play(player: int, step: int, rounds: int, session: aiohttp.ClientSession, episodes: asyncio.Queue[str]) -> None:
    port = kit.until_there("engine")["port"]
    for _ in range(rounds):
        async with session.get(f"http://127.0.0.1:{port}/?player={player}&step={step}") as answer:
            move = await answer.text()
        await episodes.put(move)


async def train() -> None:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        for step in range(1, 10**6):
            rounds = 3 if kit.differs(step) else 2
            episodes: asyncio.Queue[str] = asyncio.Queue(2)
            async with asyncio.TaskGroup() as group:
                for player in range(4):
                    group.create_task(play(player, step, rounds, session, episodes))
                for _ in range(6):
                    await episodes.get()
                kit.mark("main")
            kit.step(step)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    kit.until_there("engine")
    asyncio.run(train())


if __name__ == "__main__":
    asyncio.run(serve()) if sys.argv[1] == "serve" else main()
