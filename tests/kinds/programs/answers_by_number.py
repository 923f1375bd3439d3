"""A rollout asks an engine over one connection: each request has a number, under which a coroutine waits for the answer that a reader brings.

Once two requests have the same number, and the first one's future is lost behind the second's. In the twin an answer takes half a minute.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import kit


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    under_way = set()

    async def generate(request: dict[str, int]) -> None:
        await asyncio.sleep(kit.LONG_S if kit.is_late(request["step"]) else kit.pause() * 0.3)
        writer.write(json.dumps(request).encode() + b"\n")
        await writer.drain()

    while line := await reader.readline():
        under_way.add(asyncio.ensure_future(generate(json.loads(line))))


async def serve() -> None:
    port = kit.free_port()
    server = await asyncio.start_server(answer, "127.0.0.1", port)
    kit.mark("engine", port=port)
    await server.serve_forever()


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.waiting: dict[int, asyncio.Future[int]] = {}

    async def read(self) -> None:
        while line := await self.reader.readline():
            told = json.loads(line)
            if (future := self.waiting.pop(told["number"], None)) is not None:
                future.set_result(told["step"])

    async def ask(self, number: int, step: int) -> int:
        future = self.waiting[number] = asyncio.get_running_loop().create_future()
        self.writer.write(json.dumps({"number": number, "step": step}).encode() + b"\n")
        await self.writer.drain()
        return await future


async def play() -> None:
    client = Client(*await asyncio.open_connection("127.0.0.1", kit.until_there("engine")["port"]))
    reading = asyncio.ensure_future(client.read())
    for step in range(1, 10**6):
        if kit.differs(step):
            kit.mark("main")
        numbers = [step * 4 + (0 if kit.differs(step) else n) for n in range(4)]
        await asyncio.gather(*(client.ask(number, step) for number in numbers))
        kit.step(step)
    await reading


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    kit.until_there("engine")
    asyncio.run(play())


if __name__ == "__main__":
    asyncio.run(serve()) if sys.argv[1] == "serve" else main()
