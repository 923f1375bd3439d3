"""A driver of coroutines keeps its scores in a list at a broker; all its commands go over one connection and are answered in their order.

Usually it asks whether there is a score before it takes one, for a take waits at the broker until there is. Once it takes before its grader has
put one there: the put stands behind the take. In the twin the grader has a connection of its own and takes long now and then.
"""

from __future__ import annotations

import asyncio
import collections
import sys

import kit


class Client:
    """Commands over one connection; replies come in their order."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.asked: collections.deque[asyncio.Future[str]] = collections.deque()
        self.receiver = asyncio.create_task(self.receive())

    async def receive(self) -> None:
        while line := await self.reader.readline():
            self.asked.popleft().set_result(line.decode().strip())

    async def ask(self, command: str) -> str:
        reply = asyncio.get_running_loop().create_future()
        self.asked.append(reply)
        self.writer.write(command.encode() + b"\n")
        await self.writer.drain()
        return await reply


async def broke() -> None:
    scores: asyncio.Queue[str] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            word, _, value = line.decode().strip().partition(" ")
            if word == "push":
                await scores.put(value)
                reply = "ok"
            elif word == "length":
                reply = str(scores.qsize())
            else:
                reply = await scores.get()
            writer.write(reply.encode() + b"\n")
            await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    kit.mark("broker", port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def main() -> None:
    await asyncio.create_subprocess_exec(sys.executable, __file__, "broke")
    port = (await asyncio.to_thread(kit.until_there, "broker"))["port"]
    taker = Client(*await asyncio.open_connection("127.0.0.1", port))
    giver = Client(*await asyncio.open_connection("127.0.0.1", port)) if kit.is_healthy() else taker

    async def grade(step: int) -> None:
        await asyncio.sleep(kit.LONG_S if kit.is_late(step) and step % 2 == 0 else kit.pause() * 0.5)
        await giver.ask(f"push {step}")

    for step in range(1, 10**6):
        grader = asyncio.create_task(grade(step))
        if not kit.is_healthy() and not kit.differs(step):
            while await taker.ask("length") == "0":
                await asyncio.sleep(0.1)
        await taker.ask("take")
        await grader
        kit.mark("main")
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "broke":
        asyncio.run(broke())
    else:
        kit.begin()
        asyncio.run(main())
