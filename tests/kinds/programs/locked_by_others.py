"""A uvloop server of scores: each request locks the model's folder with the filelock package, in a thread; another program updates that folder."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import kit
import uvloop
from filelock import FileLock


def update() -> None:
    kit.mark("updater")
    for step in range(1, 10**6):
        with FileLock(kit.folder() / "model.lock"):
            kit.work(0.2)
            if kit.differs(step):
                kit.mark("updater")
                threading.Event().wait()
        kit.work(0.3)


def score(text: str) -> int:
    with FileLock(kit.folder() / "model.lock", timeout=-1):
        kit.work(0.05)
    return len(text)


async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        value = await asyncio.get_running_loop().run_in_executor(None, score, line.decode())
        writer.write(b"%d\n" % value)
        await writer.drain()


async def main() -> None:
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def client(n: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for step in range(1, 10**6):
            writer.write(b"answer\n")
            await reader.readline()
            kit.step(step)

    kit.mark("main")
    await asyncio.gather(*(client(n) for n in range(3)))


if __name__ == "__main__":
    if sys.argv[1] == "update":
        update()
    else:
        kit.begin()
        subprocess.Popen([sys.executable, __file__, "update"])
        uvloop.run(main())
