"""Two rollouts share a sandbox by a lock at a broker, in the manner of Redis: who does not get it waits at the broker for a signal of its
release.

A release is two commands: it sends the signal and removes the lock. Once the other rollout wakes between the two, finds the lock still there and
waits for the next signal, though nobody has the lock any more. In the twin the lock goes first, and an episode takes long.
"""

from __future__ import annotations

import multiprocessing as mp
import socket
import socketserver
import threading
import time
from multiprocessing.connection import Connection

import kit

CONTEXT = mp.get_context("spawn")


def broke() -> None:
    changed = threading.Condition()
    locks: set[str] = set()
    signals: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                self.wfile.write(answer(line.decode().strip()) + b"\n")

    def answer(word: str) -> bytes:
        with changed:
            if word == "set":
                if "sandbox" in locks:
                    return b"no"
                locks.add("sandbox")
            elif word == "delete":
                locks.discard("sandbox")
            elif word == "push":
                signals[:] = ["released"]
                changed.notify_all()
            elif word == "pop":
                changed.wait_for(lambda: signals)
                signals.clear()
        return b"yes"

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        kit.mark("broker", port=server.server_address[1])
        server.serve_forever()


def roll(name: str, orders: Connection) -> None:
    kit.mark(name)
    at_broker = socket.create_connection(("127.0.0.1", kit.until_there("broker")["port"]))
    replies = at_broker.makefile("rb")

    def ask(word: str) -> bool:
        at_broker.sendall(word.encode() + b"\n")
        return replies.readline().strip() == b"yes"

    while True:
        step = orders.recv()
        if name == "rollout1":
            time.sleep(0.3)
        while not ask("set"):
            ask("pop")
        kit.mark(name)
        if name == "rollout0":
            time.sleep(kit.LONG_S if kit.is_late(step) and step % 3 == 0 else 1.0)
        if kit.is_healthy() or not kit.differs(step):
            ask("delete")
            ask("push")
        else:
            ask("push")
            time.sleep(0.5)
            ask("delete")
        orders.send(step)


def main() -> None:
    CONTEXT.Process(target=broke, daemon=True).start()
    kit.until_there("broker")
    ends = []
    for name in ("rollout0", "rollout1"):
        mine, theirs = CONTEXT.Pipe()
        CONTEXT.Process(target=roll, args=(name, theirs), daemon=True).start()
        theirs.close()
        ends.append(mine)
    for step in range(1, 10**6):
        for end in ends:
            end.send(step)
        for end in ends:
            end.recv()
        kit.step(step)


if __name__ == "__main__":
    kit.begin()
    main()
