"""A rollout asks a judge with httpx, within a scope of anyio: what takes longer than twenty seconds is left without a score.

The judge loses a request now and then and never answers it. Once the rollout asks outside of the scope, for the last answer of a group. In the twin
each request is within it. A recorder, a child, is idle.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

import anyio
import httpx
import kit
from aiohttp import web


async def judge(request: web.Request) -> web.Response:
    number = (await request.json())["number"]
    if number >= kit.STEP:
        await asyncio.Event().wait()
    await asyncio.sleep(kit.pause() * 0.2)
    return web.json_response({"score": 1})


async def serve() -> None:
    app = web.Application()
    app.add_routes([web.post("/score", judge)])
    runner = web.AppRunner(app)
    await runner.setup()
    port = kit.free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    kit.mark("judge", port=port)
    await asyncio.Event().wait()


async def main() -> None:
    url = f"http://127.0.0.1:{(await anyio.to_thread.run_sync(kit.until_there, 'judge'))['port']}/score"
    async with httpx.AsyncClient(timeout=None) as client:

        async def score(number: int, n: int) -> None:
            if kit.differs(number) and n == 2:
                kit.mark("main")
                await client.post(url, json={"number": number})
                return
            with anyio.move_on_after(20):
                await client.post(url, json={"number": number})

        for number in range(1, 10**6):
            async with anyio.create_task_group() as answers:
                for n in range(3):
                    answers.start_soon(score, number, n)
            kit.step(number)


if __name__ == "__main__":
    match sys.argv[1]:
        case "judge":
            asyncio.run(serve())
        case "recorder":
            kit.mark("recorder")
            sys.stdin.read()
        case _:
            kit.begin()
            subprocess.Popen([sys.executable, __file__, "judge"])
            recorder = subprocess.Popen([sys.executable, __file__, "recorder"], stdin=subprocess.PIPE)
            kit.until_there("recorder")
            anyio.run(main)
