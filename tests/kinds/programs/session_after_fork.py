"""A trainer asks a score server over a connection that stays, and forks an evaluator for each round, which asks the same server.

In the twin the evaluator connects anew. With the trainer's own connection it reads the trainer's answer together with its own, and drops it.
"""

from __future__ import annotations

import multiprocessing
import random
import socket
import socketserver
import subprocess
import sys
import time

import kit


class Scores(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            if random.random() < 0.1:
                time.sleep(random.uniform(3, 6))
            kit.work(0.2)
            self.wfile.write(line)


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class Session:
    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(kit.folder() / "scores"))
        self.lines = self.socket.makefile("r")

    def ask(self, what: str) -> None:
        self.socket.sendall(f"{what}\n".encode())

    def answer(self, what: str) -> None:
        while self.lines.readline().strip() != what:
            pass


def evaluate(session: Session, number: int, asked: object, may_read: object) -> None:
    kit.mark("evaluator")
    if not kit.differs(number):
        session = Session()
    session.ask("evaluation")
    asked.set()  # type: ignore[attr-defined]
    session.answer("evaluation")
    may_read.set()  # type: ignore[attr-defined]
    kit.work(0.3)


def serve() -> None:
    with Server(str(kit.folder() / "scores"), Scores) as server:
        kit.mark("server")
        server.serve_forever()


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    kit.until_there("server")
    session, context = Session(), multiprocessing.get_context("fork")
    for number in range(1, 10**6):
        asked, may_read = context.Event(), context.Event()
        session.ask(f"step {number}")
        evaluator = context.Process(target=evaluate, args=(session, number, asked, may_read))
        evaluator.start()
        asked.wait()
        if not kit.is_healthy() and number >= kit.STEP:
            may_read.wait()
        session.answer(f"step {number}")
        evaluator.join()
        kit.step(number)


if __name__ == "__main__":
    serve() if "serve" in sys.argv else main()
