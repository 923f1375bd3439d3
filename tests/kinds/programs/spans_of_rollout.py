"""A store with one loop gives tasks to runners and takes the spans of their steps; the trainer waits there for a rollout to be complete.

Once the handler that waits for a rollout keeps the store's lock while it waits, and the handler for spans needs that lock to complete one. In the
twin it gives the lock back, and a runner works long.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import urllib.request
from typing import Any

import kit
from aiohttp import web

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(port: int, path: str) -> str:
    return str(opener.open(f"http://127.0.0.1:{port}/{path}", data=b"").read().decode())


def store() -> None:
    lock, tasks = asyncio.Lock(), asyncio.Queue[int]()
    spans: dict[int, int] = {}
    completed: dict[int, asyncio.Event] = {}

    async def enqueue(request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        async with lock:
            completed[number] = asyncio.Event()
            tasks.put_nowait(number)
        return web.Response()

    async def dequeue(_: web.Request) -> web.Response:
        return web.Response(text=str(await tasks.get()))

    async def add_span(request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        async with lock:
            spans[number] = spans.get(number, 0) + 1
            if spans[number] == 3:
                completed[number].set()
        return web.Response()

    async def wait_for(request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        if kit.differs(number):
            async with lock:
                await completed[number].wait()
        await completed[number].wait()
        return web.Response()

    app = web.Application()
    app.add_routes([web.post("/enqueue/{number}", enqueue), web.post("/dequeue", dequeue)])
    app.add_routes([web.post("/span/{number}", add_span), web.post("/wait/{number}", wait_for)])
    port = kit.free_port()
    kit.mark("store", port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


def runner(name: str) -> None:
    port = kit.until_there("store")["port"]
    kit.mark(name)
    while True:
        number = int(ask(port, "dequeue"))
        for step in range(3):
            kit.work(0.3)
            if kit.is_late(number) and step == 1:
                time.sleep(kit.LONG_S)
            ask(port, f"span/{number}")


def main() -> None:
    kit.begin()
    parts: list[subprocess.Popen[Any]] = [subprocess.Popen([sys.executable, __file__, "store"])]
    port = kit.until_there("store")["port"]
    time.sleep(2)
    parts += [subprocess.Popen([sys.executable, __file__, f"runner{n}"]) for n in range(2)]
    for number in range(1, 10**6):
        ask(port, f"enqueue/{number}")
        ask(port, f"wait/{number}")
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "store":
        store()
    elif sys.argv[1].startswith("runner"):
        runner(sys.argv[1])
    else:
        main()
