"""A loop in a thread plays episodes; a tool call has two seconds, and one that is cancelled tells the tool server so and awaits its word.

Once the server has nothing to cancel and says nothing; the cancelled call awaits on, and so does `wait_for`, which waits until it has ended. In
the twin the server says so after half a minute. The main thread waits for the batch.
"""

from __future__ import annotations

import asyncio
import queue
import subprocess
import sys
import threading
from typing import Any

import kit


async def tool(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers what it is asked; of a step's third question it thinks for ever."""
    while line := await reader.readline():
        kind, number, one = line.decode().split()
        if kind == "cancel":
            if kit.differs(int(number)):
                continue
            await asyncio.sleep(kit.LONG_S if kit.is_late(int(number)) else 0.3)
        elif one == "2":
            continue
        else:
            await asyncio.sleep(0.2)
        writer.write(f"{number} {one}\n".encode())
        await writer.drain()


async def serve() -> None:
    server = await asyncio.start_server(tool, "127.0.0.1", 0)
    kit.mark("tools", port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def call(port: int, number: int, one: int) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"ask {number} {one}\n".encode())
        try:
            return (await reader.readline()).decode()
        except asyncio.CancelledError:
            writer.write(f"cancel {number} {one}\n".encode())
            await reader.readline()
            raise
    finally:
        writer.close()


async def episode(port: int, number: int, one: int) -> str:
    try:
        return await asyncio.wait_for(call(port, number, one), 2.0)
    except asyncio.TimeoutError:
        return "too late"


async def play(port: int, number: int, batches: queue.Queue[Any]) -> None:
    batches.put(await asyncio.gather(*(episode(port, number, one) for one in range(4))))


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "serve"])
    port = kit.until_there("tools")["port"]
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="episodes", daemon=True).start()
    batches: queue.Queue[Any] = queue.Queue()
    for number in range(1, 10**6):
        asyncio.run_coroutine_threadsafe(play(port, number, batches), loop)
        batches.get()
        if kit.differs(number):
            kit.mark("main")
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve())
    else:
        main()
