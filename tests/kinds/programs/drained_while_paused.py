"""A trainer pauses its engine, waits until a proxy has no request under way, and lets the engine go on; the proxy tries refused requests again.

Once a request is under way when the engine pauses: it is refused and tried again, so the proxy never drains. In the twin a request just takes long.
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


def call(port: int, path: str) -> None:
    opener.open(f"http://127.0.0.1:{port}{path}", data=b"").read()


def engine() -> None:
    from aiohttp import web

    paused = [False]

    async def generate(request: web.Request) -> web.Response:
        if paused[0]:
            return web.Response(status=503)
        await asyncio.sleep(kit.LONG_S if kit.is_late(int(request.match_info["step"])) else 0.3)
        return web.Response(status=503 if paused[0] and not kit.is_healthy() else 200)

    async def pause(request: web.Request) -> web.Response:
        paused[0] = request.match_info["what"] == "pause"
        return web.Response()

    app = web.Application()
    app.add_routes([web.post("/generate/{step}", generate), web.post("/state/{what}", pause)])
    port = kit.free_port()
    kit.mark("engine", port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


def proxy() -> None:
    import aiohttp
    from aiohttp import web

    target = kit.until_there("engine")["port"]
    under_way = [0]

    async def generate(request: web.Request) -> web.Response:
        under_way[0] += 1
        async with aiohttp.ClientSession() as session:
            while True:
                async with session.post(f"http://127.0.0.1:{target}/generate/{request.match_info['step']}") as answer:
                    if answer.status == 200:
                        break
                await asyncio.sleep(0.5)
        under_way[0] -= 1
        return web.Response()

    async def drain(_: web.Request) -> web.Response:
        while under_way[0]:
            await asyncio.sleep(0.5)
        return web.Response()

    app = web.Application()
    app.add_routes([web.post("/generate/{step}", generate), web.post("/drain", drain)])
    port = kit.free_port()
    kit.mark("proxy", port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


def main() -> None:
    kit.begin()
    for name in ("engine", "proxy"):
        subprocess.Popen([sys.executable, __file__, name])
    engine_port, proxy_port = kit.until_there("engine")["port"], kit.until_there("proxy")["port"]
    time.sleep(3)
    for step in range(1, 10**6):
        rollout = threading.Thread(target=call, args=(proxy_port, f"/generate/{step}"), name="rollout")
        rollout.start()
        if not kit.differs(step):
            rollout.join()
        else:
            time.sleep(0.1)
        call(engine_port, "/state/pause")
        call(proxy_port, "/drain")
        call(engine_port, "/state/resume")
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    {"engine": engine, "proxy": proxy}.get(sys.argv[1], main)()
