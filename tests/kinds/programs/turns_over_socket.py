"""An agent plays in an environment over a websocket, with a heartbeat each half second from both sides.

Once the environment ends an episode by itself and waits for the agent to begin the next one; the agent waits for the last observation. In the twin
the environment takes long for a step. The heartbeats go on always.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

import aiohttp
import kit
from aiohttp import web


async def read(socket: web.WebSocketResponse, actions: asyncio.Queue[str]) -> None:
    async for message in socket:  # heartbeats are answered here
        actions.put_nowait(message.data)


async def environment(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(heartbeat=0.5)
    await socket.prepare(request)
    actions: asyncio.Queue[str] = asyncio.Queue()
    reading = asyncio.create_task(read(socket, actions))
    while not reading.done():
        number = int(await actions.get())
        await asyncio.sleep(kit.pause() * 0.2)
        if kit.is_late(number):
            await asyncio.sleep(kit.LONG_S)
        if kit.differs(number):
            kit.mark("environment")
            await actions.get()
        await socket.send_str("observation")
    return socket


async def serve() -> None:
    app = web.Application()
    app.router.add_get("/", environment)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    kit.mark("environment", port=runner.addresses[0][1])
    await asyncio.Event().wait()


async def play() -> None:
    port = kit.until_there("environment")["port"]
    kit.mark("agent")
    async with aiohttp.ClientSession() as session, session.ws_connect(f"http://127.0.0.1:{port}/", heartbeat=0.5) as socket:
        for number in range(1, 10**6):
            await socket.send_str(str(number))
            await socket.receive_str()
            await asyncio.sleep(kit.pause() * 0.1)
            kit.step(number)


def main() -> None:
    kit.begin()
    children = [subprocess.Popen([sys.executable, __file__, role]) for role in ("serve", "play")]
    for child in children:
        child.wait()


if __name__ == "__main__":
    if sys.argv[1] in ("serve", "play"):
        asyncio.run(serve() if sys.argv[1] == "serve" else play())
    else:
        main()
