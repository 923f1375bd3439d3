"""Agents call a tool server, which has two slots; a tool asks its agent's model over HTTP, and a thread of the agents' process answers.

Once the model calls the tools as well before it answers, for both agents: the tools wait for the slots that they have. In the twin the model is slow.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import kit

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def tools() -> None:
    import aiohttp
    from aiohttp import web

    slots = asyncio.Semaphore(2)
    model = kit.until_there("main_model")["port"]

    async def use(request: web.Request) -> web.Response:
        async with slots:
            if request.match_info["how"] == "plain":
                return web.Response(text="done")
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
                async with session.get(f"http://127.0.0.1:{model}/{request.match_info['step']}") as answer:
                    return web.Response(text=await answer.text())

    app = web.Application()
    app.add_routes([web.get("/{how}/{step}", use)])
    port = kit.free_port()
    kit.mark("tools", port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


class Model(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        step = int(self.path[1:])
        kit.work(0.1)
        if kit.differs(step):
            time.sleep(0.5)
            port = kit.until_there("tools")["port"]
            opener.open(f"http://127.0.0.1:{port}/plain/{step}").read()
        elif kit.is_late(step):
            time.sleep(kit.LONG_S)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"text")


def play(port: int, step: int) -> None:
    opener.open(f"http://127.0.0.1:{port}/sampling/{step}").read()


def main() -> None:
    kit.begin()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, name="model", daemon=True).start()
    kit.mark("main_model", port=server.server_port)
    subprocess.Popen([sys.executable, __file__, "tools"])
    port = kit.until_there("tools")["port"]
    time.sleep(3)
    for step in range(1, 10**6):
        agents = [threading.Thread(target=play, args=(port, step), name=f"agent{n}") for n in range(2)]
        for one in agents:
            one.start()
        for one in agents:
            one.join()
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    tools() if sys.argv[1] == "tools" else main()
