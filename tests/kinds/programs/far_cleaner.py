"""The driver takes episodes from an actor's buffer; a rollout actor fills it, asks a tool server, which locks the data; a cleaner locks them, too."""

from __future__ import annotations

import asyncio
import fcntl
import socket
import socketserver
import subprocess
import sys
from pathlib import Path

import kit
import ray


class Tool(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            with (kit.folder() / "data.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                kit.work(0.1)
            self.wfile.write(line)


def clean() -> None:
    for step in range(1, 10**6):
        kit.work(0.5)
        kit.mark("cleaner")
        with (kit.folder() / "data.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            kit.work(0.1)
            if kit.differs(step):
                Path(kit.fifo("rubbish")).read_bytes()


@ray.remote(num_cpus=0)
class Buffer:
    def __init__(self) -> None:
        kit.mark("buffer")
        self.episodes: asyncio.Queue[int] = asyncio.Queue()

    async def put(self, step: int) -> None:
        await self.episodes.put(step)

    async def take(self) -> int:
        return await self.episodes.get()


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, port: int) -> None:
        kit.mark("rollout")
        self.port = port

    def run(self, buffer: ray.actor.ActorHandle) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as connection, connection.makefile("rw") as tool:
            for step in range(1, 10**6):
                kit.work(0.2)
                kit.mark("rollout")
                tool.write(f"{step}\n")
                tool.flush()
                tool.readline()
                ray.get(buffer.put.remote(step))


if __name__ == "__main__":
    if sys.argv[1] == "tool":
        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Tool) as server:
            kit.mark("tool", port=server.server_address[1])
            server.serve_forever()
    elif sys.argv[1] == "clean":
        clean()
    else:
        kit.begin()
        info = ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20)
        for role in ("tool", "clean"):
            subprocess.Popen([sys.executable, __file__, role])
        buffer, rollout = Buffer.remote(), Rollout.remote(kit.until_there("tool")["port"])
        running = rollout.run.remote(buffer)
        kit.mark("cluster", address=info["gcs_address"])
        while True:
            kit.mark("main")
            kit.step(int(ray.get(buffer.take.remote())))
