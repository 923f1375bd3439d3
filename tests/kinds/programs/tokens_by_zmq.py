"""A frontend, an engine and a detokenizer pass requests, tokens and texts round by ZeroMQ, one way each; the trainer asks the frontend over HTTP.

Once the detokenizer waits for a lock that another thread of its own took and keeps. In the twin the engine computes long.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
import urllib.request

import kit

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def address(name: str) -> str:
    return f"ipc://{kit.folder()}/{name}.ipc"


def engine() -> None:
    import zmq

    context = zmq.Context()
    requests, tokens = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    requests.bind(address("requests"))
    tokens.connect(address("tokens"))
    kit.mark("engine")
    while True:
        asked = requests.recv_pyobj()
        kit.work(0.3)
        if kit.is_late(asked["step"]):
            time.sleep(kit.LONG_S)
        tokens.send_pyobj({**asked, "tokens": list(range(16))})


def detokenizer() -> None:
    import zmq

    context = zmq.Context()
    tokens, texts = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    tokens.bind(address("tokens"))
    texts.connect(address("texts"))
    kit.mark("detokenizer")
    vocabulary = threading.Lock()

    def reload() -> None:
        vocabulary.acquire()
        threading.Event().wait()

    while True:
        got = tokens.recv_pyobj()
        if kit.differs(got["step"]):
            threading.Thread(target=reload, name="vocabulary", daemon=True).start()
            time.sleep(0.2)
            kit.mark("detokenizer")
        with vocabulary:
            texts.send_pyobj({"number": got["number"], "text": "".join(map(str, got["tokens"]))})


def frontend() -> None:
    import zmq
    import zmq.asyncio
    from aiohttp import web

    context = zmq.asyncio.Context()
    requests, texts = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    requests.connect(address("requests"))
    texts.bind(address("texts"))
    waiting: dict[int, asyncio.Future[str]] = {}

    async def take_texts() -> None:
        while True:
            got = await texts.recv_pyobj()
            waiting.pop(got["number"]).set_result(got["text"])

    async def generate(request: web.Request) -> web.Response:
        step, number = int(request.match_info["step"]), int(request.match_info["number"])
        waiting[number] = asyncio.get_running_loop().create_future()
        answer = waiting[number]
        await requests.send_pyobj({"step": step, "number": number})
        return web.Response(text=await answer)

    async def begin(app: web.Application) -> None:
        app["texts"] = asyncio.create_task(take_texts())

    app = web.Application()
    app.on_startup.append(begin)
    app.add_routes([web.post("/generate/{step}/{number}", generate)])
    port = kit.free_port()
    kit.mark("frontend", port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


def main() -> None:
    kit.begin()
    for name in ("engine", "detokenizer", "frontend"):
        subprocess.Popen([sys.executable, __file__, name])
    port = kit.until_there("frontend")["port"]
    time.sleep(3)
    for step in range(1, 10**6):
        for number in range(3):
            opener.open(f"http://127.0.0.1:{port}/generate/{step}/{step * 3 + number}", data=b"").read()
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    {"engine": engine, "detokenizer": detokenizer, "frontend": frontend}.get(sys.argv[1], main)()
