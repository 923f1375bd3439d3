"""A generation server of coroutines is paused for new weights by an event that is made anew, and resumed by setting it.

Paused twice, it has two events: requests that came between wait for the first, resuming sets the second. Three generators and a trainer ask it.
"""

from __future__ import annotations

import asyncio
import sys

import aiohttp
import kit
from aiohttp import web

GENERATORS = 3


class Server:
    def __init__(self) -> None:
        self.resumed = asyncio.Event()
        self.resumed.set()
        self.waiting = 0

    async def generate(self, request: web.Request) -> web.Response:
        self.waiting += 1
        await self.resumed.wait()
        self.waiting -= 1
        await asyncio.sleep(kit.pause() * 0.5)
        return web.json_response({"text": "an answer"})

    async def pause(self, request: web.Request) -> web.Response:
        self.resumed = asyncio.Event()
        return web.json_response({"paused": True})

    async def resume(self, request: web.Request) -> web.Response:
        self.resumed.set()
        return web.json_response({"paused": False})

    async def status(self, request: web.Request) -> web.Response:
        return web.json_response({"waiting": self.waiting})


def serve() -> None:
    port = kit.free_port()
    server = Server()
    app = web.Application()
    for name in ("generate", "pause", "resume", "status"):
        app.router.add_post(f"/{name}", getattr(server, name))
    kit.mark("server", port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


class Client:
    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self.session, self.port = session, port
        self.answers: asyncio.Queue[str] = asyncio.Queue(maxsize=GENERATORS)

    async def post(self, what: str) -> dict[str, object]:
        async with self.session.post(f"http://127.0.0.1:{self.port}/{what}") as answer:
            return dict(await answer.json())

    async def generate(self) -> None:
        while True:
            await self.answers.put(str((await self.post("generate"))["text"]))

    async def all_wait(self) -> None:
        while (await self.post("status"))["waiting"] != GENERATORS:
            while not self.answers.empty():
                self.answers.get_nowait()
            await asyncio.sleep(0.1)

    async def update_weights(self, step: int) -> None:
        await self.post("pause")
        if kit.differs(step):
            await self.all_wait()
            await self.post("pause")
        await asyncio.sleep(kit.pause() * 0.3)
        await self.post("resume")

    async def train(self) -> None:
        for step in range(1, 10**6):
            for _ in range(GENERATORS):
                await self.answers.get()
            await self.update_weights(step)
            kit.step(step)


async def ask(port: int) -> None:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        client = Client(session, port)
        while True:
            try:
                await client.post("status")
                break
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.1)
        await asyncio.gather(client.train(), *(client.generate() for _ in range(GENERATORS)))


async def main() -> None:
    await asyncio.create_subprocess_exec(sys.executable, __file__, "serve")
    await ask((await asyncio.to_thread(kit.until_there, "server"))["port"])


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        asyncio.run(main())
