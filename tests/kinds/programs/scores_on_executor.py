"""Rank 1 scores answers over HTTP, on an event loop in a thread that hands the work to a pool; rank 0 asks it before each update.

Once the pool opens a table that is a pipe without a writer. In the twin it works for long.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kit

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def score_of(step: int) -> str:
    kit.work(0.2)
    if kit.differs(step):
        return Path(kit.fifo("table")).read_text()
    if kit.is_late(step):
        time.sleep(kit.LONG_S)
    return "1"


def serve() -> None:
    from aiohttp import web

    pool = ThreadPoolExecutor(2, "score")

    async def score(request: web.Request) -> web.Response:
        step = int(request.match_info["step"])
        return web.Response(text=await asyncio.get_running_loop().run_in_executor(pool, score_of, step))

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    app = web.Application()
    app.add_routes([web.get("/score/{step}", score)])
    port = kit.free_port()
    kit.mark("scores", port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None, loop=loop, handle_signals=False)


def rank() -> None:
    me = int(os.environ["RANK"])
    kit.mark(f"rank{me}")
    if me == 1:
        threading.Thread(target=serve, name="scores", daemon=True).start()
    port = kit.until_there("scores")["port"]
    time.sleep(2)
    for step in range(1, 10**6):
        if me == 0:
            opener.open(f"http://127.0.0.1:{port}/score/{step}").read()
        kit.work(0.2)
        dist.all_reduce(torch.ones(8))
        if me == 0:
            kit.step(step)


def main() -> None:
    kit.begin()
    for one in kit.ranks_as_programs(__file__, 3):
        one.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
    else:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        rank()
