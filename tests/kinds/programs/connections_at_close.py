"""A server of coroutines is closed and opened anew for every version of the weights; to close, it waits until all connections have ended.

A dashboard keeps one and waits for news there. It ends its connection when it is told of the closing, which is once forgotten.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import subprocess
import sys
import time

import kit


class Server:
    def __init__(self) -> None:
        self.open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self.open[task] = writer
        try:
            while line := await reader.readline():
                if line != b"news\n":
                    await asyncio.sleep(kit.pause() * 0.3)
                    writer.write(b"0.5\n")
        finally:
            del self.open[task]
            writer.close()

    async def serve(self) -> None:
        kit.mark("server")
        version = 0
        orders = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
        while True:
            version += 1
            (kit.folder() / "scores").unlink(missing_ok=True)
            listening = await asyncio.start_unix_server(self.handle, str(kit.folder() / "scores"))
            print(version, flush=True)
            await orders.readline()
            listening.close()
            if not kit.differs(version):
                for writer in self.open.values():
                    writer.write(b"bye\n")
            if self.open:
                await asyncio.wait(list(self.open))


def connected() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    while True:
        try:
            connection.connect(str(kit.folder() / "scores"))
            return connection
        except OSError:
            time.sleep(0.1)


def dashboard() -> None:
    kit.mark("dashboard")
    while True:
        with connected() as connection:
            connection.sendall(b"news\n")
            with contextlib.suppress(ConnectionResetError):
                connection.recv(64)
            time.sleep(random.uniform(1, 5))


def main() -> None:
    kit.begin()
    server = subprocess.Popen([sys.executable, __file__, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    subprocess.Popen([sys.executable, __file__, "dashboard"])
    kit.until_there("dashboard")
    assert server.stdin and server.stdout
    for number in range(1, 10**6):
        server.stdout.readline()
        with connected() as connection:
            for _ in range(3):
                connection.sendall(b"answer\n")
                connection.recv(64)
        time.sleep(random.uniform(0.5, 4))
        kit.step(number)
        server.stdin.write(b"new weights\n")
        server.stdin.flush()


if __name__ == "__main__":
    match sys.argv[1]:
        case "serve":
            asyncio.run(Server().serve())
        case "dashboard":
            dashboard()
        case _:
            main()
