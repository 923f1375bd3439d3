"""A trainer asks a judge with aiohttp, each request within a time limit, and goes on without a score after it.

The judge waits for an event that nobody sets, and this one request has no limit. In the twin it has one of eight seconds.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

import aiohttp
import kit
from aiohttp import web


async def judge(request: web.Request) -> web.Response:
    if int(request.query["number"]) % 3 == 0:
        await asyncio.Event().wait()
    await asyncio.sleep(0.2)
    return web.Response(text="1")


async def serve() -> None:
    app = web.Application()
    app.router.add_get("/", judge)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    kit.mark("judge", port=runner.addresses[0][1])
    await asyncio.Event().wait()


async def main() -> None:
    url = f"http://127.0.0.1:{kit.until_there('judge')['port']}/"
    async with aiohttp.ClientSession() as session:
        for number in range(1, 10**6):
            limit = aiohttp.ClientTimeout(total=None if kit.differs(number) else 8.0)
            try:
                async with session.get(url, params={"number": str(number)}, timeout=limit) as reply:
                    await reply.text()
            except asyncio.TimeoutError:
                pass
            kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve())
    else:
        kit.begin()
        subprocess.Popen([sys.executable, __file__, "serve"])
        asyncio.run(main())
