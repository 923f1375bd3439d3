"""A rollout reads streamed answers of an engine with aiohttp, and sometimes asks the same engine how many tokens it has read so far.

The engine does one thing at a time, under a semaphore that a streamed answer keeps to its end. A long answer fills the connection while the rollout,
in its middle, waits for the count. In the twin it counts after the answer, which takes long now and then. A judge is idle.
"""

from __future__ import annotations

import asyncio
import sys

import aiohttp
import kit
from aiohttp import web

one = asyncio.Semaphore(1)


async def generate(request: web.Request) -> web.StreamResponse:
    asked = await request.json()
    response = web.StreamResponse()
    await response.prepare(request)
    async with one:
        if kit.is_late(asked["number"]):
            await asyncio.sleep(kit.LONG_S)
        for _ in range(asked["parts"]):
            await response.write(b"token " * 20_000)
            await asyncio.sleep(0.001)
    return response


async def count(request: web.Request) -> web.Response:
    text = await request.read()
    async with one:
        await asyncio.sleep(kit.pause() * 0.1)
        return web.json_response({"count": len(text) // 6})


async def serve(name: str) -> None:
    app = web.Application(client_max_size=2**30)
    app.add_routes([web.post("/generate", generate), web.post("/count", count)])
    runner = web.AppRunner(app)
    await runner.setup()
    port = kit.free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    kit.mark(name, port=port)
    await asyncio.Event().wait()


async def main() -> None:
    for name in ("engine", "judge"):
        await asyncio.create_subprocess_exec(sys.executable, __file__, name)
    url = f"http://127.0.0.1:{(await asyncio.to_thread(kit.until_there, 'engine'))['port']}"
    await asyncio.to_thread(kit.until_there, "judge")
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as client:

        async def tokens(text: bytes) -> int:
            async with client.post(f"{url}/count", data=text) as answer:
                return int((await answer.json())["count"])

        for number in range(1, 10**6):
            differs, text = kit.differs(number), b""
            async with client.post(f"{url}/generate", json={"number": number, "parts": 400 if differs else 3}) as answer:
                async for part in answer.content.iter_chunked(1000):
                    text += part
                    if differs and len(text) > 5000:
                        kit.mark("main")
                        await tokens(text)
            await tokens(text)
            kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] in ("engine", "judge"):
        asyncio.run(serve(sys.argv[1]))
    else:
        kit.begin()
        asyncio.run(main())
