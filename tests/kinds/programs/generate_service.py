"""A client asks an HTTP server; its handlers hand the prompts to a generator thread and wait for the answers."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from concurrent.futures import Future
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import kit
import requests

REQUESTS: queue.Queue[tuple[int, Future[str]]] = queue.Queue()


class Generate(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer: Future[str] = Future()
        REQUESTS.put((prompt["step"], answer))
        body = json.dumps({"text": answer.result()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def generate() -> None:
    while True:
        step, answer = REQUESTS.get()
        if kit.differs(step):
            kit.mark("server")
            load_adapter(kit.fifo("adapter.bin"))
        kit.work()
        answer.set_result("word " * 10)


def load_adapter(path: str) -> bytes:
    return Path(path).read_bytes()


def serve() -> None:
    threading.Thread(target=generate, name="generator", daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Generate)
    kit.mark("server", port=server.server_address[1])
    server.serve_forever()


def ask() -> None:
    subprocess.Popen([sys.executable, __file__, "serve"])
    port = kit.until_there("server")["port"]
    for step in range(1, 10**6):
        kit.mark("main")
        requests.post(f"http://127.0.0.1:{port}/generate", json={"step": step}).json()
        kit.step(step)
        kit.work(0.3)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        ask()
