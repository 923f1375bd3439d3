"""An agent calls tools over HTTP: a call is only accepted, and its answer comes later as an event of one long response, which a task reads.

The server ends that response after some events. Usually the task opens it anew; once it takes the end for the end of all, and nobody is told:
the answer that the agent waits for is never read. In the twin a tool takes long.
"""

from __future__ import annotations

import asyncio
import json
import sys

import aiohttp
import kit
from aiohttp import web


def serve() -> None:
    events: asyncio.Queue[int] = asyncio.Queue()
    calls: set[asyncio.Task[None]] = set()

    async def run(number: int) -> None:
        await asyncio.sleep(kit.LONG_S if kit.is_late(number) and number % 3 == 0 else kit.pause() * 0.5)
        await events.put(number)

    async def call(request: web.Request) -> web.Response:
        kit.mark("server", port=port)
        task = asyncio.create_task(run((await request.json())["number"]))
        calls.add(task)
        task.add_done_callback(calls.discard)
        return web.json_response({}, status=202)

    async def listen(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for _ in range(2):
            await response.write(b"data: " + json.dumps({"number": await events.get()}).encode() + b"\n\n")
        return response

    port = kit.free_port()
    app = web.Application()
    app.add_routes([web.post("/call", call), web.get("/events", listen)])
    kit.mark("server", port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


async def main() -> None:
    await asyncio.create_subprocess_exec(sys.executable, __file__, "serve")
    url = f"http://127.0.0.1:{(await asyncio.to_thread(kit.until_there, 'server'))['port']}"
    await asyncio.sleep(2)
    pending: dict[int, asyncio.Future[None]] = {}
    done = 0
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:

        async def read() -> None:
            while not kit.differs(done):
                async with session.get(f"{url}/events") as response:
                    async for line in response.content:
                        if line.startswith(b"data: "):
                            pending.pop(json.loads(line[6:])["number"]).set_result(None)

        reader = asyncio.create_task(read())
        for number in range(1, 10**6):
            pending[number] = asyncio.get_running_loop().create_future()
            waited = pending[number]
            async with session.post(f"{url}/call", json={"number": number}) as answer:
                await answer.read()
            await waited
            done = number
            kit.mark("main")
            kit.step(number)
        await reader


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        asyncio.run(main())
