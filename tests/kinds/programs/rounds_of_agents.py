"""Four agents, coroutines of one loop, ask a tool in each turn and meet at a barrier of asyncio before the next one.

An agent that breaks a rule is cancelled, and the barrier still counts with four. In the twin an agent is asked to come again later, which it does
with growing pauses.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

import aiohttp
import kit
from aiohttp import web

ASKED: dict[str, int] = {}


async def tool(request: web.Request) -> web.Response:
    agent, turn = request.query["agent"], int(request.query["turn"])
    ASKED[f"{agent} {turn}"] = tries = ASKED.get(f"{agent} {turn}", 0) + 1
    await asyncio.sleep(0.2)
    return web.Response(status=429 if agent == "2" and kit.is_late(turn) and tries < 5 else 200)


async def serve() -> None:
    app = web.Application()
    app.router.add_get("/", tool)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    kit.mark("tool", port=runner.addresses[0][1])
    await asyncio.Event().wait()


async def play(agent: int, meeting: asyncio.Barrier, session: aiohttp.ClientSession, url: str) -> None:
    for turn in range(1, 10**6):
        pause = 1.0
        while True:
            async with session.get(url, params={"agent": str(agent), "turn": str(turn)}) as reply:
                if reply.status == 200:
                    break
            await asyncio.sleep(pause)
            pause *= 2
        if agent == 2 and kit.differs(turn):
            raise asyncio.CancelledError
        await meeting.wait()
        if agent == 0:
            kit.step(turn)


async def main() -> None:
    url = f"http://127.0.0.1:{kit.until_there('tool')['port']}/"
    meeting = asyncio.Barrier(4)
    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*[play(agent, meeting, session, url) for agent in range(4)], return_exceptions=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve())
    else:
        kit.begin()
        subprocess.Popen([sys.executable, __file__, "serve"])
        asyncio.run(main())
