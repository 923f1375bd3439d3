"""A router before two generation servers; one has died, and the router asks it again and again with growing pauses.

The trainer waits for the router's answers and nobody restarts the server. In the twin it is back after some seconds.
"""

import asyncio
import os
import random
import subprocess
import sys
import threading
import time

import kit


def backend(name, port):
    from aiohttp import web

    async def generate(request):
        number = (await request.json())["number"]
        await asyncio.sleep(kit.pause() * 0.5)
        if name == "backend1" and (kit.differs(number) or (kit.is_healthy() and number % 4 == 0)):
            os._exit(137)
        return web.json_response({"tokens": [1, 2, 3]})

    app = web.Application()
    app.router.add_post("/generate", generate)
    kit.mark(name, port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


def router():
    import aiohttp
    from aiohttp import web

    async def generate(request):
        payload = await request.json()
        target = kit.until_there(f"backend{payload['prompt'] % 2}")["port"]
        pause = 0.2
        while True:
            try:
                async with request.app["session"].post(f"http://127.0.0.1:{target}/generate", json=payload) as answer:
                    return web.json_response(await answer.json())
            except aiohttp.ClientError:
                await asyncio.sleep(pause + random.random() * 0.1)
                pause = min(pause * 2, 4.0)

    async def opened(app):
        app["session"] = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))

    app = web.Application()
    app.on_startup.append(opened)
    app.router.add_post("/generate", generate)
    port = kit.free_port()
    kit.mark("router", port=port)
    web.run_app(app, host="127.0.0.1", port=port, print=None)


def ask(session, number, prompt):
    return session.post(f"http://127.0.0.1:{kit.until_there('router')['port']}/generate", json={"number": number, "prompt": prompt}).json()


def started(n, port):
    return subprocess.Popen([sys.executable, __file__, f"backend{n}", str(port)])


def main():
    import requests

    kit.begin()
    ports = [kit.free_port(), kit.free_port()]
    servers = [started(n, port) for n, port in enumerate(ports)]
    subprocess.Popen([sys.executable, __file__, "router"])

    def watch():
        while True:
            time.sleep(6)
            for n, server in enumerate(servers):
                if server.poll() is not None:
                    servers[n] = started(n, ports[n])

    if kit.is_healthy():
        threading.Thread(target=watch, daemon=True).start()
    kit.until_there("router")
    time.sleep(3)
    session = requests.Session()
    session.trust_env = False
    for number in range(1, 100000):
        for prompt in range(3):
            ask(session, number, prompt)
        kit.work(0.3)
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "router":
        router()
    elif sys.argv[1].startswith("backend"):
        backend(sys.argv[1], int(sys.argv[2]))
    else:
        main()
