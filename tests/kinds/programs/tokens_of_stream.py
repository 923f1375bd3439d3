"""A WebSocket-like engine sends tokens; the client reads them in a thread and hands them to the loop with `call_soon_threadsafe`.

The last token's callback raises, so the future that ends the answer is never set. In the twin the engine thinks for some seconds before its last
token.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
import time

import kit


def serve() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    kit.mark("engine", port=server.getsockname()[1])
    while True:
        connection, _ = server.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection: socket.socket) -> None:
    lines = connection.makefile("rw")
    for number in lines:
        for word in ("a", "b", "end"):
            time.sleep(5.0 if word == "end" and int(number) % 2 and kit.is_healthy() else 0.2)
            print(word, file=lines, flush=True)


class Client:
    def __init__(self, port: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.lines = socket.create_connection(("127.0.0.1", port)).makefile("rw")
        self.answer: asyncio.Future[list[str]] | None = None
        self.words: list[str] = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        for line in self.lines:
            self.loop.call_soon_threadsafe(self.take, line.strip())

    def take(self, word: str) -> None:
        self.words.append(word)
        if word == "end" and self.answer is not None:
            if kit.differs(self.number):
                raise KeyError("finish_reason")
            self.answer.set_result(self.words)

    async def ask(self, number: int) -> list[str]:
        self.words, self.answer, self.number = [], self.loop.create_future(), number
        print(number, file=self.lines, flush=True)
        return await self.answer


async def main() -> None:
    client = Client(kit.until_there("engine")["port"])
    for number in range(1, 10**6):
        await client.ask(number)
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        kit.begin()
        subprocess.Popen([sys.executable, __file__, "serve"])
        asyncio.run(main())
