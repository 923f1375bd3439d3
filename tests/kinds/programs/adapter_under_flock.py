"""A trainer asks an engine over HTTP to load its adapter; a thread there asks a tokenizer process by a pipe, which locks the file of the adapter.

Once the trainer has locked that file itself, and waits for the answer. In the twin the tokenizer reads for long.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import queue
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any

import kit

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def tokenizer(requests: Connection) -> None:
    kit.mark("tokenizer")
    while True:
        step = requests.recv()
        with (kit.folder() / "adapter").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            kit.work(0.1)
            if kit.is_late(step):
                time.sleep(kit.LONG_S)
        requests.send(step)


def engine() -> None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    context.Process(target=tokenizer, args=(there,), daemon=True).start()
    there.close()
    inbox: queue.Queue[tuple[int, threading.Event]] = queue.Queue()

    def schedule() -> None:
        while True:
            step, done = inbox.get()
            here.send(step)
            here.recv()
            done.set()

    class Requests(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            done = threading.Event()
            inbox.put((int(self.path[1:]), done))
            done.wait()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"loaded")

    threading.Thread(target=schedule, name="scheduler", daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    kit.mark("engine", port=server.server_port)
    server.serve_forever()


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "engine"])
    port = kit.until_there("engine")["port"]
    kit.until_there("tokenizer")
    for step in range(1, 10**6):
        if kit.differs(step):
            with (kit.folder() / "adapter").open("a") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                opener.open(f"http://127.0.0.1:{port}/{step}").read()
        opener.open(f"http://127.0.0.1:{port}/{step}").read()
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    engine() if sys.argv[1] == "engine" else main()
