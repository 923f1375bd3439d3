"""A buffer listens at a Unix socket; one thread accepts and answers, the main thread counts what is there. Three actors send episodes.

The thread dies of a broken episode. The socket still listens: some actors are connected and wait for an answer, others wait to be connected.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time

import kit

EPISODES: list[int] = []


def accept(listening: socket.socket) -> None:
    while True:
        peer, _ = listening.accept()
        with peer, peer.makefile("rwb") as lines:
            step = int(lines.readline())
            if kit.differs(step):
                raise ValueError(f"episode {step} has no end")
            EPISODES.append(step)
            if kit.is_healthy() and step % 7 == 0:
                time.sleep(3)
            kit.work(0.1)
            lines.write(b"kept\n")
            lines.flush()


def serve() -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(kit.folder() / "buffer"))
    listening.listen(0)
    kit.mark("buffer")
    threading.Thread(target=accept, args=(listening,), name="accept").start()
    while True:
        time.sleep(0.5)
        del EPISODES[:-100]


def send(step: int) -> bytes:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(kit.folder() / "buffer"))
        peer.sendall(f"{step}\n".encode())
        return peer.recv(100)


def play(name: str) -> None:
    kit.until_there("buffer")
    for step in range(1, 10**6):
        kit.mark(name)
        kit.work(0.3)
        while not send(step):
            time.sleep(0.5)
        if name == "actor0":
            kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "buffer":
        serve()
    elif sys.argv[1].startswith("actor"):
        play(sys.argv[1])
    else:
        kit.begin()
        for child in [subprocess.Popen([sys.executable, __file__, role]) for role in ("buffer", "actor0", "actor1", "actor2")]:
            child.wait()
