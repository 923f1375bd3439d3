"""A trainer's loop waits for episodes of a task beside it, five seconds at a time, and says each time that it still waits.

The task meets an odd episode and ends; nobody looks at it. In the twin it asks a silent tool within a limit of its own, and goes on after that.
"""

from __future__ import annotations

import asyncio

import kit


async def tool(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def make(episodes: asyncio.Queue[int], port: int) -> None:
    for number in range(1, 10**6):
        await asyncio.sleep(0.3)
        if kit.differs(number):
            raise ValueError("odd episode")
        if kit.is_healthy():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                async with asyncio.timeout(7):
                    await reader.read()
            except TimeoutError:
                writer.close()
        await episodes.put(number)


async def main() -> None:
    server = await asyncio.start_server(tool, "127.0.0.1", 0)
    episodes: asyncio.Queue[int] = asyncio.Queue(2)
    maker = asyncio.create_task(make(episodes, server.sockets[0].getsockname()[1]))
    while not maker.cancelled():
        try:
            async with asyncio.timeout(5):
                kit.step(await episodes.get())
        except TimeoutError:
            print("still waiting", flush=True)


if __name__ == "__main__":
    kit.begin()
    asyncio.run(main())
