"""A rollout asks an engine for streamed answers with httpx, over two connections at most, and has no limit for the wait for one of them.

An answer that grows too long is put aside in the middle, to be looked at later, and its stream is not closed: after two of these no connection comes
back. In the twin the stream is closed, and an answer takes long now and then. A judge, a child, is idle.
"""

from __future__ import annotations

import asyncio
import sys

import httpx
import kit
from aiohttp import web


async def generate(request: web.Request) -> web.StreamResponse:
    number = (await request.json())["number"]
    response = web.StreamResponse()
    await response.prepare(request)
    if kit.is_late(number) and number % 2:
        await asyncio.sleep(kit.LONG_S)
    for _ in range(10):
        await response.write(b"token\n" * 50)
        await asyncio.sleep(kit.pause() * 0.1)
    return response


async def serve(name: str) -> None:
    app = web.Application()
    app.add_routes([web.post("/generate", generate)])
    runner = web.AppRunner(app)
    await runner.setup()
    port = kit.free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    kit.mark(name, port=port)
    await asyncio.Event().wait()


async def main() -> None:
    for name in ("engine", "judge"):
        await asyncio.create_subprocess_exec(sys.executable, __file__, name)
    url = f"http://127.0.0.1:{(await asyncio.to_thread(kit.until_there, 'engine'))['port']}/generate"
    await asyncio.to_thread(kit.until_there, "judge")
    aside: list[object] = []
    limits = httpx.Limits(max_connections=2)
    async with httpx.AsyncClient(limits=limits, timeout=httpx.Timeout(30.0, pool=None, read=None)) as client:

        async def ask(number: int) -> int:
            answer = await client.send(client.build_request("POST", url, json={"number": number}), stream=True)
            count, lines = 0, answer.aiter_lines()
            async for _ in lines:
                count += 1
                if count > 60 and kit.differs(number):
                    aside.append(lines)
                    return count
            return count

        for number in range(1, 10**6):
            kit.mark("main")
            await asyncio.gather(*(ask(number) for _ in range(3)))
            kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] in ("engine", "judge"):
        asyncio.run(serve(sys.argv[1]))
    else:
        kit.begin()
        asyncio.run(main())
