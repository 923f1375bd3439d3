"""A server of coroutines hands requests to its engine thread; two threads of a client generate, a third asks whether the server is well."""

from __future__ import annotations

import asyncio
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

import kit
import requests
from aiohttp import web


class Engine(threading.Thread):
    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.waiting: queue.Queue[tuple[int, asyncio.Future[int], asyncio.AbstractEventLoop]] = queue.Queue()

    def run(self) -> None:
        while True:
            step, answer, loop = self.waiting.get()
            if kit.differs(step):
                kit.mark("server", port=self.port)
                self.load_adapter(kit.fifo("adapter"))
            kit.work(0.3)
            loop.call_soon_threadsafe(answer.set_result, step)

    def load_adapter(self, path: str) -> bytes:
        return Path(path).read_bytes()


def serve() -> None:
    port = kit.free_port()
    engine = Engine(port)
    engine.start()

    async def generate(request: web.Request) -> web.Response:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()
        engine.waiting.put((int(request.query["step"]), answer, loop))
        return web.json_response({"step": await answer})

    async def health(request: web.Request) -> web.Response:
        return web.json_response({"ok": True})

    app = web.Application()
    app.router.add_get("/generate", generate)
    app.router.add_get("/health", health)
    kit.mark("server", port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


def watch_health(port: int) -> None:
    while True:
        requests.get(f"http://127.0.0.1:{port}/health", timeout=30)
        time.sleep(1)


def generate(port: int) -> None:
    with requests.Session() as session:
        for step in range(1, 10**6):
            kit.mark("main")
            session.get(f"http://127.0.0.1:{port}/generate", params={"step": step})
            kit.step(step)


def train() -> None:
    subprocess.Popen([sys.executable, __file__, "serve"])
    port = kit.until_there("server")["port"]
    time.sleep(3)
    threading.Thread(target=watch_health, args=(port,), daemon=True).start()
    lanes = [threading.Thread(target=generate, args=(port,)) for _ in range(2)]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        train()
