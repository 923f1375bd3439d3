"""A trainer and a rollout exchange weights and episodes over one connection, each in coroutines: first everything is written, then it is read.

Once both send more than the connection and the buffers of its streams hold, both wait for room. A logger is idle.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from multiprocessing.connection import Connection

import kit


def log(orders: Connection) -> None:
    kit.mark("logger")
    while True:
        orders.recv()


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    for number in range(1, 10**6):
        size = 50_000_000 if kit.differs(number) else 1_000
        await asyncio.sleep(kit.pause())
        writer.write(size.to_bytes(8, "big") + bytes(size))
        await writer.drain()
        await reader.readexactly(int.from_bytes(await reader.readexactly(8), "big"))
        kit.step(number)


async def roll_out(port: int) -> None:
    kit.mark("rollout")
    await exchange(*await asyncio.open_connection("127.0.0.1", port))


def start_rollout(port: int) -> None:
    asyncio.run(roll_out(port))


async def train() -> None:
    server = await asyncio.start_server(exchange, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    spawn = multiprocessing.get_context("spawn")
    spawn.Process(target=start_rollout, args=(port,), daemon=True).start()
    await server.serve_forever()


if __name__ == "__main__":
    kit.begin()
    ours, theirs = multiprocessing.Pipe()
    multiprocessing.get_context("spawn").Process(target=log, args=(theirs,), daemon=True).start()
    asyncio.run(train())
