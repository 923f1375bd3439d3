"""A process makes episodes of several seconds, another waits for each of them."""

from __future__ import annotations

import multiprocessing
import multiprocessing.queues
import random
import socket
import time

import kit


def make_episodes(episodes: multiprocessing.queues.Queue[int]) -> None:
    kit.mark("maker")
    tools = socket.create_server(("127.0.0.1", 0))
    for step in range(1, 10**6):
        if kit.differs(step):
            kit.mark("maker")
            call_tool(tools.getsockname())
        until = time.monotonic() + random.uniform(4, 10)
        while time.monotonic() < until:
            kit.work(0.5)
        episodes.put(step)


def call_tool(address: tuple[str, int]) -> bytes:
    with socket.create_connection(address) as tool:
        tool.sendall(b"run\n")
        return tool.recv(4096)


if __name__ == "__main__":
    kit.begin()
    ready: multiprocessing.queues.Queue[int] = multiprocessing.get_context("spawn").Queue()
    multiprocessing.get_context("spawn").Process(target=make_episodes, args=(ready,), daemon=True).start()
    while True:
        kit.step(ready.get())
        kit.mark("main")
