"""Coroutines play episodes with two slots for tools; as soon as a batch has enough episodes, the others are cancelled.

A cancelled episode keeps its slot, where the run is not healthy. The tools are a server of their own, which is idle then.
"""

from __future__ import annotations

import asyncio
import sys

import kit

SLOTS, EPISODES, ENOUGH = 2, 5, 2


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        line = await reader.readline()
        await asyncio.sleep(kit.pause())
        writer.write(line)
        await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def serve() -> None:
    port = kit.free_port()
    server = await asyncio.start_server(answer, "127.0.0.1", port)
    kit.mark("tools", port=port)
    await server.serve_forever()


async def call_tool(port: int, text: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"{text}\n".encode())
        return await reader.readline()
    finally:
        writer.close()


async def episode(slots: asyncio.Semaphore, port: int, step: int, n: int) -> int:
    await slots.acquire()
    try:
        await call_tool(port, f"{step} {n}")
    except asyncio.CancelledError:
        if not kit.differs(step):
            slots.release()
        raise
    slots.release()
    return n


async def batch(slots: asyncio.Semaphore, port: int, step: int) -> list[int]:
    waiting = {asyncio.create_task(episode(slots, port, step, n)) for n in range(EPISODES)}
    answers: list[int] = []
    while len(answers) < ENOUGH:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        answers += [task.result() for task in done]
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    return answers


async def heartbeat() -> None:
    while True:
        await asyncio.sleep(0.5)


async def main() -> None:
    await asyncio.create_subprocess_exec(sys.executable, __file__, "serve")
    port = (await asyncio.to_thread(kit.until_there, "tools"))["port"]
    beating = asyncio.create_task(heartbeat())
    slots = asyncio.Semaphore(SLOTS)
    for step in range(1, 10**6):
        await batch(slots, port, step)
        kit.step(step)
    beating.cancel()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(serve())
    else:
        kit.begin()
        asyncio.run(main())
