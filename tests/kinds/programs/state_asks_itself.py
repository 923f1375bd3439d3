"""A trainer serves its state over HTTP in a thread, under a lock, and asks itself and a judge for theirs before it saves.

Where it asks while it has the lock itself, its own handlers wait for it and it waits for them.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import aiohttp
import kit

STATE = threading.Lock()


class State(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        with STATE:
            text = b"well"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        pass


def judge() -> None:
    port = kit.free_port()
    server = ThreadingHTTPServer(("127.0.0.1", port), State)
    kit.mark("judge", port=port)
    server.serve_forever()


async def ask_all(ports: list[int]) -> list[str]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:

        async def ask(port: int) -> str:
            async with session.get(f"http://127.0.0.1:{port}/state") as answer:
                return await answer.text()

        return list(await asyncio.gather(*(ask(port) for port in ports)))


def save(ports: list[int], step: int) -> None:
    if kit.differs(step):
        with STATE:
            asyncio.run(ask_all(ports))
    else:
        asyncio.run(ask_all(ports))
        with STATE:
            time.sleep(kit.pause() * 0.5)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "judge"])
    port = kit.free_port()
    own = ThreadingHTTPServer(("127.0.0.1", port), State)
    ports = [port, port, kit.until_there("judge")["port"]]
    threading.Thread(target=own.serve_forever, name="state", daemon=True).start()
    for step in range(1, 10**6):
        kit.work(0.5)
        save(ports, step)
        kit.step(step)


if __name__ == "__main__":
    judge() if sys.argv[1] == "judge" else main()
