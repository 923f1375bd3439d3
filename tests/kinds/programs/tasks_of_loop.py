"""A task makes episodes, another trains on them; asyncio's queue is between them. A third writes how far they are."""

from __future__ import annotations

import asyncio

import kit

TASKS: list[asyncio.Task[None]] = []


async def make(episodes: asyncio.Queue[int]) -> None:
    for step in range(1, 10**6):
        await asyncio.sleep(kit.pause() * 0.5)
        if kit.differs(step):
            raise ValueError(f"episode {step} is empty")
        await episodes.put(step)


async def tell() -> None:
    while True:
        await asyncio.sleep(1)
        (kit.folder() / "told").touch()


async def train() -> None:
    episodes: asyncio.Queue[int] = asyncio.Queue(4)
    TASKS.extend((asyncio.create_task(make(episodes)), asyncio.create_task(tell())))
    while True:
        kit.mark("main")
        kit.step(await episodes.get())


if __name__ == "__main__":
    kit.begin()
    asyncio.run(train())
