"""A trainer takes samples from a queue that the handlers of a server in its thread fill; two players push them over HTTP, by turns that it gives.

Once a player opens a level that is a pipe without a writer. In the twin a level is long.
"""

from __future__ import annotations

import asyncio
import queue
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import kit
from aiohttp import web

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
EACH = 3


def serve(samples: queue.Queue[int]) -> None:
    async def push(request: web.Request) -> web.Response:
        samples.put(int(request.match_info["number"]))
        return web.Response()

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    app = web.Application()
    app.add_routes([web.post("/push/{number}", push)])
    port = kit.free_port()
    kit.mark("port", port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None, loop=loop, handle_signals=False)


def player(name: str) -> None:
    port = kit.until_there("port")["port"]
    time.sleep(2)
    kit.mark(name)
    for step in range(1, 10**6):
        for number in range(EACH):
            kit.work(0.2)
            if name == "player1" and number == 1 and kit.differs(step):
                Path(kit.fifo("level")).read_text()
            if name == "player1" and number == 1 and kit.is_late(step):
                time.sleep(kit.LONG_S)
            opener.open(f"http://127.0.0.1:{port}/push/{number}", data=b"").read()
        while int((kit.folder() / "step").read_text() if (kit.folder() / "step").exists() else 0) < step:
            time.sleep(0.2)


def main() -> None:
    kit.begin()
    samples: queue.Queue[int] = queue.Queue()
    threading.Thread(target=serve, args=(samples,), name="server", daemon=True).start()
    for n in range(2):
        subprocess.Popen([sys.executable, __file__, f"player{n}"])
    for step in range(1, 10**6):
        for _ in range(2 * EACH):
            samples.get()
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    player(sys.argv[1]) if sys.argv[1].startswith("player") else main()
