"""A task asks a remote environment for episodes of several seconds and puts them into asyncio's queue; another waits for them."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time

import kit


async def make(episodes: asyncio.Queue[int], port: int) -> None:
    answers, questions = await asyncio.open_connection("127.0.0.1", port)
    for step in range(1, 10**6):
        questions.write(b"%d\n" % step)
        await episodes.put(int(await answers.readline()))


async def train(port: int) -> None:
    episodes: asyncio.Queue[int] = asyncio.Queue()
    maker = asyncio.create_task(make(episodes, port))
    while not maker.done():
        kit.mark("main")
        kit.step(await episodes.get())


def simulate() -> None:
    """One connection, one question at a time."""
    import socket

    listener = socket.create_server(("127.0.0.1", 0))
    kit.mark("simulator", port=listener.getsockname()[1])
    connection, _ = listener.accept()
    lines = connection.makefile("r")
    for line in lines:
        kit.mark("simulator")
        if kit.differs(int(line)):
            lines.readline()
        until = time.monotonic() + random.uniform(3, 8)
        while time.monotonic() < until:
            kit.work(0.5)
        connection.sendall(line.encode())


if __name__ == "__main__":
    if sys.argv[1] == "simulate":
        simulate()
    else:
        kit.begin()
        subprocess.Popen([sys.executable, __file__, "simulate"])
        asyncio.run(train(kit.until_there("simulator")["port"]))
