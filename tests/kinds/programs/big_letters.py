"""Two programs exchange tensors over a connection; what they send is larger than what the connection holds."""

from __future__ import annotations

import multiprocessing
import socket

import kit

SIZE = 8_000_000


def exchange(name: str, other: socket.socket) -> None:
    for step in range(1, 10**6):
        kit.work(0.5)
        kit.mark(name)
        if name == "left" or kit.differs(step):
            other.sendall(b"x" * SIZE)
            receive(other)
        else:
            receive(other)
            other.sendall(b"x" * SIZE)
        if name == "left":
            kit.step(step)


def receive(other: socket.socket) -> None:
    left = SIZE
    while left:
        left -= len(other.recv(min(left, 1 << 16)))


if __name__ == "__main__":
    kit.begin()
    listener = socket.create_server(("127.0.0.1", 0))
    left = socket.create_connection(listener.getsockname())
    right, _ = listener.accept()
    listener.close()
    players = [multiprocessing.Process(target=exchange, args=args) for args in (("left", left), ("right", right))]
    for player in players:
        player.start()
    left.close()
    right.close()
    for player in players:
        player.join()
