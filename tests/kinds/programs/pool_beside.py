"""A pool of processes tokenizes at the start of each step and then rests, while the trainer asks a tool over a connection."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ProcessPoolExecutor

import kit


def tokenize(text: str) -> int:
    kit.mark(f"worker{text}")
    kit.work(0.2)
    return len(text)


def answer_calls(listener: socket.socket) -> None:
    """The tool, somewhere else."""
    while True:
        connection, _ = listener.accept()
        step = int(connection.recv(64))
        if kit.differs(step):
            KEPT.append(connection)
            continue
        kit.work(0.5)
        connection.sendall(b"done")
        connection.close()


KEPT: list[socket.socket] = []


def call_tool(address: tuple[str, int], step: int) -> bytes:
    with socket.create_connection(address) as tool:
        tool.sendall(str(step).encode())
        return tool.recv(64)


if __name__ == "__main__":
    kit.begin()
    listener = socket.create_server(("127.0.0.1", 0))
    with ProcessPoolExecutor(3) as pool:
        list(pool.map(tokenize, "012"))
        threading.Thread(target=answer_calls, args=(listener,), daemon=True).start()
        for step in range(1, 10**6):
            list(pool.map(tokenize, "012"))
            kit.mark("main")
            call_tool(listener.getsockname(), step)
            kit.step(step)
