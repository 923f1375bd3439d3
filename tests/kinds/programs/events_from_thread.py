"""A loop of episodes hands each answer of the engine's thread on through an event; where it is set from that thread itself, the loop sleeps on."""

from __future__ import annotations

import asyncio
import queue
import threading

import kit

REQUESTS: queue.Queue[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = queue.Queue()


def engine() -> None:
    while True:
        number, loop, done = REQUESTS.get()
        kit.work(0.3)
        if kit.differs(number):
            kit.mark("main")
            done.set()
        else:
            loop.call_soon_threadsafe(done.set)


async def episodes() -> None:
    for step in range(1, 10**6):
        done = asyncio.Event()
        REQUESTS.put((step, asyncio.get_running_loop(), done))
        await done.wait()
        kit.step(step)


if __name__ == "__main__":
    kit.begin()
    threading.Thread(target=engine, daemon=True).start()
    asyncio.run(episodes())
