"""An engine asks a registry for the next version of the weights, and the registry answers when there is one; a trainer publishes it, one request
each.

Once the trainer waits for a file that nobody writes before it publishes: registry and engine wait for it, without a connection of its own. In
the twin it computes for long.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request

import aiohttp
import kit
from aiohttp import web


def serve() -> None:
    version = 0
    changed = asyncio.Condition()

    async def following(request: web.Request) -> web.Response:
        after = int(request.query["after"])
        async with changed:
            await changed.wait_for(lambda: version > after)
        return web.json_response({"version": version})

    async def publish(request: web.Request) -> web.Response:
        nonlocal version
        async with changed:
            version = (await request.json())["version"]
            changed.notify_all()
        return web.json_response({})

    app = web.Application()
    app.add_routes([web.get("/following", following), web.post("/publish", publish)])
    port = kit.free_port()
    kit.mark("registry", port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


async def engine(port: int) -> None:
    version = 0
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
        while True:
            async with session.get(f"http://127.0.0.1:{port}/following?after={version}") as answer:
                version = (await answer.json())["version"]
            kit.mark("engine")
            await asyncio.sleep(kit.pause() * 0.1)


def main() -> None:
    subprocess.Popen([sys.executable, __file__, "serve"])
    port = kit.until_there("registry")["port"]
    subprocess.Popen([sys.executable, __file__, "engine", str(port)])
    for step in range(1, 10**6):
        kit.work(0.5)
        if kit.differs(step):
            with open(kit.fifo("batches")) as batches:
                batches.read()
        if kit.is_late(step) and step % 2 == 0:
            kit.in_c(kit.LONG_S)
        body = json.dumps({"version": step}).encode()
        headers = {"Content-Type": "application/json"}
        for _ in range(60):
            try:
                urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/publish", body, headers)).read()
                break
            except OSError:
                kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    elif sys.argv[1] == "engine":
        asyncio.run(engine(int(sys.argv[2])))
    else:
        kit.begin()
        main()
