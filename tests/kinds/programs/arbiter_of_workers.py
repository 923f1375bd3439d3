"""A reward server: an arbiter listens, forks two workers that accept, and looks after them once a second at a pipe of its own.

Both workers come to stand in their answers, at a pipe that nobody writes; a third client waits in the queue. In the twin their answers take half
a minute.
"""

from __future__ import annotations

import http.server
import os
import select
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import kit


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        number = int(self.path.rpartition("?")[2])
        kit.work(0.1)
        if kit.is_late(number):
            time.sleep(kit.LONG_S)
        if kit.differs(number):
            with open(kit.fifo("table")) as table:
                table.read()
        body = b"0.5"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def accept(listener: socket.socket) -> None:
    server = http.server.HTTPServer(listener.getsockname(), Handler, bind_and_activate=False)
    server.socket = listener
    while True:
        server.handle_request()


def serve() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    for number in range(2):
        if os.fork() == 0:
            kit.mark(f"worker{number}")
            accept(listener)
    read, _ = os.pipe()
    kit.mark("arbiter", port=listener.getsockname()[1])
    while True:
        select.select([read], [], [], 1.0)
        os.waitpid(-1, os.WNOHANG)


def ask(port: int, number: int) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/score?{number}") as answer:
        answer.read()


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    port = kit.until_there("arbiter")["port"]
    for number in range(1, 10**6):
        asking = [threading.Thread(target=ask, args=(port, number), name=f"ask{one}") for one in range(3)]
        for one in asking:
            one.start()
        for one in asking:
            one.join()
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        main()
