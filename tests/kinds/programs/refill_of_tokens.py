"""A limiter of its own process keeps a bucket of tokens, which a task fills again; two clients take a token of it before they ask the engine.

The task that fills the bucket dies of a wrong rate, and nobody awaits it. The limiter still accepts whoever comes; the engine is idle.
"""

from __future__ import annotations

import asyncio
import random
import socket
import subprocess
import sys
import time

import kit


class Bucket:
    def __init__(self) -> None:
        self.tokens, self.rate, self.change = 2, 4.0, asyncio.Condition()

    async def fill(self) -> None:
        while True:
            await asyncio.sleep(1 / self.rate)
            if kit.is_healthy() and random.random() < 0.05:
                await asyncio.sleep(random.uniform(1, 3.5))
            async with self.change:
                self.tokens = min(self.tokens + 1, 3)
                self.change.notify()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            if kit.differs(int(line)):
                self.rate = 0
            async with self.change:
                await self.change.wait_for(lambda: self.tokens > 0)
                self.tokens -= 1
            writer.write(line)
            await writer.drain()
        writer.close()


async def limit() -> None:
    bucket, port = Bucket(), kit.free_port()
    server = await asyncio.start_server(bucket.answer, "127.0.0.1", port)
    filling = asyncio.create_task(bucket.fill())
    kit.mark("limiter", port=port)
    async with server:
        await server.serve_forever()
    await filling


def generate() -> None:
    port = kit.free_port()
    listening = socket.create_server(("127.0.0.1", port))
    kit.mark("engine", port=port)
    while True:
        peer, _ = listening.accept()
        with peer, peer.makefile("rwb") as lines:
            for line in lines:
                kit.work(0.1)
                lines.write(line)
                lines.flush()


def play(name: str) -> None:
    limiter, engine = (kit.until_there(role)["port"] for role in ("limiter", "engine"))
    kit.mark(name)
    with socket.create_connection(("127.0.0.1", limiter)) as one, one.makefile("rwb") as tokens:
        for step in range(1, 10**6):
            tokens.write(f"{step}\n".encode())
            tokens.flush()
            tokens.readline()
            with socket.create_connection(("127.0.0.1", engine)) as peer, peer.makefile("rwb") as lines:
                lines.write(f"prompt {step}\n".encode())
                lines.flush()
                lines.readline()
            time.sleep(0.1)
            if name == "client0":
                kit.step(step)


if __name__ == "__main__":
    match sys.argv[1]:
        case "limiter":
            asyncio.run(limit())
        case "engine":
            generate()
        case "client0" | "client1":
            play(sys.argv[1])
        case _:
            kit.begin()
            for child in [subprocess.Popen([sys.executable, __file__, role]) for role in ("limiter", "engine", "client0", "client1")]:
                child.wait()
