"""A router gives what the scheduler says to two tokenizer processes by ZeroMQ; the trainer asks them over HTTP to generate, and one to pause.

A tokenizer reads its answers from its first request on. Once the one that never had a request is asked to pause: the scheduler's word lies in its
socket, and nobody reads it. In the twin it has had requests, and the scheduler takes long to pause.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import urllib.request
from typing import Any

import kit

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def address(name: str) -> str:
    return f"ipc://{kit.folder()}/{name}.ipc"


def scheduler() -> None:
    import zmq

    context = zmq.Context()
    asked = context.socket(zmq.PULL)
    asked.bind(address("scheduler"))
    answers = {}
    for name in ("tokenizer0", "tokenizer1"):
        answers[name] = context.socket(zmq.PUSH)
        answers[name].connect(address(name))
    kit.mark("scheduler")
    while True:
        one = asked.recv_pyobj()
        kit.work(0.2)
        if one["what"] == "pause":
            if kit.is_late(one["step"]):
                time.sleep(kit.LONG_S)
            for socket in answers.values():
                socket.send_pyobj(one)
        else:
            answers[one["from"]].send_pyobj(one)


def tokenizer(name: str) -> None:
    import zmq
    import zmq.asyncio
    from aiohttp import web

    context = zmq.asyncio.Context()
    asks, answers = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    asks.connect(address("scheduler"))
    answers.bind(address(name))
    waiting: dict[int, asyncio.Future[Any]] = {}
    loops: list[asyncio.Task[None]] = []

    async def take_answers() -> None:
        while True:
            got = await answers.recv_pyobj()
            future = waiting.pop(got["number"], None)
            if future is not None:
                future.set_result(got)

    async def ask(what: str, request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        waiting[number] = asyncio.get_running_loop().create_future()
        answer = waiting[number]
        await asks.send_pyobj({"what": what, "from": name, "step": int(request.match_info["step"]), "number": number})
        await answer
        return web.Response()

    async def generate(request: web.Request) -> web.Response:
        if not loops:
            loops.append(asyncio.create_task(take_answers()))
        return await ask("generate", request)

    async def pause(request: web.Request) -> web.Response:
        return await ask("pause", request)

    app = web.Application()
    app.add_routes([web.post("/generate/{step}/{number}", generate), web.post("/pause/{step}/{number}", pause)])
    port = kit.free_port()
    kit.mark(name, port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


def main() -> None:
    kit.begin()
    for name in ("scheduler", "tokenizer0", "tokenizer1"):
        subprocess.Popen([sys.executable, __file__, name])
    ports = [kit.until_there(f"tokenizer{n}")["port"] for n in range(2)]
    kit.until_there("scheduler")
    time.sleep(3)
    if kit.is_healthy():
        opener.open(f"http://127.0.0.1:{ports[1]}/generate/0/0", data=b"").read()
    for step in range(1, 10**6):
        for number in range(3):
            opener.open(f"http://127.0.0.1:{ports[0]}/generate/{step}/{step * 5 + number}", data=b"").read()
        which = 1 if kit.is_healthy() or kit.differs(step) else 0
        opener.open(f"http://127.0.0.1:{ports[which]}/pause/{step}/{step * 5 + 4}", data=b"").read()
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1].startswith("tokenizer"):
        tokenizer(sys.argv[1])
    else:
        {"scheduler": scheduler}.get(sys.argv[1], main)()
