"""A tree search in one loop: an episode takes one of four slots, and gathers its branches, each of which asks a server of its own.

Once the branches take a slot too: four episodes hold them all, and none of their branches gets one. The server is idle.
"""

from __future__ import annotations

import asyncio
import random
import sys

import kit


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        await asyncio.sleep(kit.pause() * 0.5)
        writer.write(line)
        await writer.drain()
    writer.close()


async def serve() -> None:
    port = kit.free_port()
    server = await asyncio.start_server(answer, "127.0.0.1", port)
    kit.mark("server", port=port)
    await server.serve_forever()


async def ask(port: int, text: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"{text}\n".encode())
        return await reader.readline()
    finally:
        writer.close()


async def branch(slots: asyncio.Semaphore, port: int, number: int, n: int) -> bytes:
    if not kit.differs(number):
        return await ask(port, f"{number} {n}")
    async with slots:
        return await ask(port, f"{number} {n}")


async def episode(slots: asyncio.Semaphore, port: int, number: int) -> int:
    async with slots:
        if kit.is_healthy() and random.random() < 0.1:
            await asyncio.sleep(random.uniform(1, 3))
        return len(await asyncio.gather(*(branch(slots, port, number, n) for n in range(3))))


async def main() -> None:
    await asyncio.create_subprocess_exec(sys.executable, __file__, "serve")
    port = (await asyncio.to_thread(kit.until_there, "server"))["port"]
    slots = asyncio.Semaphore(4)
    for number in range(1, 10**6):
        await asyncio.gather(*(episode(slots, port, number) for _ in range(4)))
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve())
    else:
        kit.begin()
        asyncio.run(main())
