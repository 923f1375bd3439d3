"""A trainer asks a frontend over HTTP, which hands requests to a decoding engine by ZeroMQ; a thread of it fetches caches from a prefilling engine.

The decoder's main loop waits for its thread, and the thread reads at the prefiller's socket. Once the prefiller opens a prefix that is a pipe
without a writer. In the twin it computes long.
"""

from __future__ import annotations

import queue
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import kit

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def prefill() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    kit.mark("prefill", port=listener.getsockname()[1])
    connection, _ = listener.accept()
    lines = connection.makefile("r")
    while True:
        step = int(lines.readline())
        kit.work(0.2)
        if kit.differs(step):
            Path(kit.fifo("prefix")).read_text()
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        connection.sendall(b"cache\n")


def decode() -> None:
    import zmq

    wanted: queue.Queue[tuple[int, threading.Event]] = queue.Queue()

    def fetch() -> None:
        connection = socket.create_connection(("127.0.0.1", kit.until_there("prefill")["port"]))
        lines = connection.makefile("r")
        while True:
            step, done = wanted.get()
            connection.sendall(f"{step}\n".encode())
            lines.readline()
            done.set()

    threading.Thread(target=fetch, name="caches", daemon=True).start()
    requests = zmq.Context.instance().socket(zmq.REP)
    requests.bind(f"ipc://{kit.folder()}/decode.ipc")
    kit.mark("decode")
    while True:
        step = requests.recv_pyobj()
        done = threading.Event()
        wanted.put((step, done))
        done.wait()
        kit.work(0.2)
        requests.send_pyobj("text")


def frontend() -> None:
    import zmq

    lock = threading.Lock()
    engine = zmq.Context.instance().socket(zmq.REQ)
    engine.connect(f"ipc://{kit.folder()}/decode.ipc")

    class Requests(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            with lock:
                engine.send_pyobj(int(self.path[1:]))
                engine.recv_pyobj()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"text")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    kit.mark("frontend", port=server.server_port)
    server.serve_forever()


def main() -> None:
    kit.begin()
    for name in ("prefill", "decode", "frontend"):
        subprocess.Popen([sys.executable, __file__, name])
    port = kit.until_there("frontend")["port"]
    kit.until_there("decode")
    time.sleep(1)
    for step in range(1, 10**6):
        asked = [threading.Thread(target=lambda: opener.open(f"http://127.0.0.1:{port}/{step}").read()) for _ in range(2)]  # noqa: B023
        for one in asked:
            one.start()
        for one in asked:
            one.join()
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    {"prefill": prefill, "decode": decode, "frontend": frontend}.get(sys.argv[1], main)()
