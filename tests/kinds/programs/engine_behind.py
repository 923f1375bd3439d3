"""A TCP server whose handlers hand each line to an engine, a process behind a pipe; two clients ask it."""

from __future__ import annotations

import multiprocessing
import socket
import socketserver
import subprocess
import sys
import threading
from multiprocessing.connection import Connection

import kit


def run_engine(orders: Connection) -> None:
    kit.mark("engine")
    cache = threading.RLock()
    done = threading.Event()

    def prefetch(step: int) -> None:
        with cache:
            done.wait() if kit.differs(step) else kit.work(0.1)

    while True:
        step = orders.recv()
        kit.mark("engine")
        threading.Thread(target=prefetch, args=(step,), name="prefetch").start()
        kit.work(0.3)
        with cache:
            orders.send(step)


class Ask(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            with ENGINE_TURN:
                ENGINE[0].send(int(line))
                self.wfile.write(b"%d\n" % ENGINE[0].recv())


ENGINE: list[Connection] = []
ENGINE_TURN = threading.Lock()


def serve() -> None:
    mine, its = multiprocessing.get_context("spawn").Pipe()
    multiprocessing.get_context("spawn").Process(target=run_engine, args=(its,), daemon=True).start()
    its.close()
    ENGINE.append(mine)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Ask) as server:
        kit.mark("server", port=server.server_address[1])
        server.serve_forever()


def ask(name: str) -> None:
    with socket.create_connection(("127.0.0.1", kit.until_there("server")["port"])) as server:
        answers = server.makefile("r")
        for step in range(1, 10**6):
            kit.mark(name)
            server.sendall(b"%d\n" % step)
            answers.readline()
            kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        subprocess.Popen([sys.executable, __file__, "serve"])
        threading.Thread(target=ask, args=("main",), daemon=True).start()
        ask("main")
