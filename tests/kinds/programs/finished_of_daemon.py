"""A trainer's daemon serves tasks from a thread with a loop; runners ask it for tasks and report; the trainer waits until all tasks are done.

Once the report of a task is without a reward, and the daemon drops it: it looks every second whether all are done, and runners ask each
second for tasks. In the twin a task is long.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
import urllib.request
from typing import Any

import kit
from aiohttp import web

TASKS = 4
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Daemon:
    def __init__(self) -> None:
        self.tasks: asyncio.Queue[dict[str, int]] = asyncio.Queue()
        self.completed: dict[int, float] = {}
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.serve, name="daemon", daemon=True).start()

    def serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        app = web.Application()
        app.add_routes([web.get("/task", self.task), web.post("/report", self.report)])
        port = kit.free_port()
        kit.mark("daemon", port=port)
        web.run_app(app, host="127.0.0.1", port=port, print=None, loop=self.loop, handle_signals=False)

    async def task(self, _: web.Request) -> web.Response:
        return web.json_response(None if self.tasks.empty() else self.tasks.get_nowait())

    async def report(self, request: web.Request) -> web.Response:
        told = await request.json()
        if told["reward"] is not None:
            self.completed[told["number"]] = told["reward"]
        return web.json_response({})

    async def until_finished(self, step: int) -> None:
        self.completed.clear()
        for number in range(TASKS):
            self.tasks.put_nowait({"step": step, "number": number})
        while len(self.completed) < TASKS:
            await asyncio.sleep(1)


def ask(port: int, path: str, body: dict[str, Any] | None = None) -> Any:
    return json.loads(opener.open(f"http://127.0.0.1:{port}/{path}", data=json.dumps(body).encode() if body else None).read())


def runner(name: str) -> None:
    port = kit.until_there("daemon")["port"]
    time.sleep(2)
    kit.mark(name)
    while True:
        task = ask(port, "task")
        if task is None:
            time.sleep(1)
            continue
        kit.work(0.3)
        if kit.is_late(task["step"]) and task["number"] == 2:
            time.sleep(kit.LONG_S)
        is_none = task["number"] == 2 and kit.differs(task["step"])
        ask(port, "report", {"number": task["number"], "reward": None if is_none else 1.0})


def main() -> None:
    kit.begin()
    daemon = Daemon()
    for n in range(2):
        subprocess.Popen([sys.executable, __file__, f"runner{n}"])
    kit.until_there("runner1")
    for step in range(1, 10**6):
        asyncio.run_coroutine_threadsafe(daemon.until_finished(step), daemon.loop).result()
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    runner(sys.argv[1]) if sys.argv[1].startswith("runner") else main()
