"""A gateway of sessions on uvloop: each request takes one of two slots of its model, and hands it back.

Once a request that fails keeps its slot, twice, and all others wait. In the twin the model takes long now and then.
"""

from __future__ import annotations

import asyncio

import kit
import uvloop

SLOTS = 2


class Gateway:
    def __init__(self) -> None:
        self.slots = asyncio.Queue[int]()
        for slot in range(SLOTS):
            self.slots.put_nowait(slot)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            step = int(line)
            slot = await self.slots.get()
            if kit.differs(step):
                writer.write(b"busy\n")
                continue
            await asyncio.sleep(kit.LONG_S if slot == 0 and kit.is_late(step) else kit.pause() * 0.2)
            self.slots.put_nowait(slot)
            writer.write(b"done\n")


async def session(port: int, number: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for step in range(1, 10**6):
        writer.write(f"{step}\n".encode())
        await reader.readline()
        if number == 0:
            kit.step(step)


async def run() -> None:
    server = await asyncio.start_server(Gateway().answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(session(port, n) for n in range(4)))


def main() -> None:
    kit.begin()
    uvloop.run(run())


if __name__ == "__main__":
    main()
