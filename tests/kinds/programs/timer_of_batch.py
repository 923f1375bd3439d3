"""A judge server gathers questions into batches: a batch is judged when it is full, or when a timer says that it has waited long enough.

Whoever is the first of a batch starts the timer. A question that is withdrawn cancels it, though others wait in the same batch: these wait on. In the
twin the timer stays, and the judge works long now and then. A thread counts.
"""

from __future__ import annotations

import socket
import socketserver
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import kit


class Batches:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waiting: list[tuple[int, threading.Event]] = []
        self.timer: threading.Timer | None = None

    def ask(self, number: int, withdrawn: bool) -> None:
        done = threading.Event()
        with self.lock:
            self.waiting.append((number, done))
            if self.timer is None:
                self.timer = threading.Timer(2.0, self.judge)
                self.timer.start()
            if len(self.waiting) == 4:
                self.timer.cancel()
                threading.Thread(target=self.judge).start()
        if withdrawn:
            time.sleep(0.5)
            with self.lock:
                self.waiting = [one for one in self.waiting if one[1] is not done]
                if kit.differs(number) and self.timer is not None:
                    self.timer.cancel()
            return
        done.wait()

    def judge(self) -> None:
        with self.lock:
            batch, self.waiting, self.timer = self.waiting, [], None
        kit.work(0.2)
        for number, done in batch:
            if kit.is_late(number):
                time.sleep(kit.LONG_S / 2)
            done.set()


def count() -> None:
    while True:
        time.sleep(5)


def serve() -> None:
    batches = Batches()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                number, withdrawn = line.split()
                batches.ask(int(number), withdrawn == b"1")
                self.wfile.write(b"done\n")

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=count, daemon=True).start()
        kit.mark("judge", port=server.server_address[1])
        server.serve_forever()


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    port = kit.until_there("judge")["port"]
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]

    def ask(which: int, number: int) -> None:
        connections[which].sendall(f"{number} {int(which == 2)}\n".encode())
        connections[which].recv(100)

    with ThreadPoolExecutor(3) as threads:
        for number in range(1, 10**6):
            list(threads.map(ask, range(3), [number] * 3))
            kit.mark("main")
            kit.step(number)


if __name__ == "__main__":
    serve() if sys.argv[1] == "serve" else main()
