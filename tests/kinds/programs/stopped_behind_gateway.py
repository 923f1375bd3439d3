"""A gateway of coroutines asks an engine over HTTP, with an hour's limit; three threads of the trainer ask the gateway.

Once somebody stops the engine by a signal. In the twin the engine is long.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import aiohttp
import kit
from aiohttp import web

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Engine(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        step = int(self.path[1:])
        kit.work(0.2)
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        if kit.differs(step):
            os.kill(os.getpid(), signal.SIGSTOP)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


def engine() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    kit.mark("engine", port=server.server_port)
    server.serve_forever()


def gateway() -> None:
    port = kit.until_there("engine")["port"]

    async def complete(request: web.Request) -> web.Response:
        async with aiohttp.ClientSession() as session:

            async def ask() -> int:
                async with session.post(f"http://127.0.0.1:{port}/{request.match_info['step']}", timeout=aiohttp.ClientTimeout(total=None)) as answer:
                    return answer.status

            return web.Response(text=str(await asyncio.wait_for(ask(), 3600)))

    app = web.Application()
    app.add_routes([web.post("/{step}", complete)])
    own = kit.free_port()
    kit.mark("gateway", port=own)
    web.run_app(app, host="127.0.0.1", port=own, print=None)


def main() -> None:
    kit.begin()
    for name in ("engine", "gateway"):
        subprocess.Popen([sys.executable, __file__, name])
    port = kit.until_there("gateway")["port"]
    time.sleep(3)

    def ask(step: int) -> None:
        opener.open(f"http://127.0.0.1:{port}/{step}", data=b"").read()

    with ThreadPoolExecutor(3) as threads:
        for step in range(1, 10**6):
            list(threads.map(ask, [step] * 3))
            kit.step(step)


if __name__ == "__main__":
    {"engine": engine, "gateway": gateway}.get(sys.argv[1], main)()
