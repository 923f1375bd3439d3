"""An asynchronous agent of Ray asks tool servers over HTTP in one call each.

One server's handler waits for a lock that its own janitor thread kept.
"""

import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import aiohttp
import ray
from kit import begin, differs, free_port, mark, pause, step, until_there, work

cache = threading.Lock()
asked = {"number": 0}


class Tool(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        asked["number"] = int(self.path.rpartition("/")[2])
        work(0.2)
        with cache:
            text = b"result"
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


def clean() -> None:
    while True:
        time.sleep(0.2)
        cache.acquire()
        if differs(asked["number"]):
            raise OSError("no space left")
        cache.release()


def serve(name: str, port: int) -> None:
    mark(name)
    if name == "compiler":
        threading.Thread(target=clean, daemon=True).start()
    ThreadingHTTPServer(("127.0.0.1", port), Tool).serve_forever()


@ray.remote(max_concurrency=10)
class Agent:
    def __init__(self) -> None:
        mark("agent")

    async def episode(self, port: int, number: int) -> str:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session,
            session.get(f"http://127.0.0.1:{port}/{number}") as answer,
        ):
            return await answer.text()

    async def status(self) -> float:
        return pause()


def look(agent: Any) -> None:
    while True:
        ray.get(agent.status.remote())
        time.sleep(0.4)


def main() -> None:
    begin()
    ports = {name: free_port() for name in ("compiler", "search")}
    for name, port in ports.items():
        subprocess.Popen([sys.executable, __file__, name, str(port)])
        until_there(name)
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    mark("cluster", address=ray.get_runtime_context().gcs_address)
    agent = Agent.remote()
    time.sleep(1)
    threading.Thread(target=look, args=(agent,), daemon=True).start()
    for number in range(10**6):
        ray.get([agent.episode.remote(port, number) for port in ports.values()])
        step(number)


if sys.argv[1] in ("compiler", "search"):
    serve(sys.argv[1], int(sys.argv[2]))
else:
    main()
