"""Coroutines move episodes between two buffers, each with a lock, always that of the smaller number first; another writes how far they are."""

from __future__ import annotations

import asyncio

import kit


class Buffer:
    def __init__(self, number: int) -> None:
        self.number = number
        self.lock = asyncio.Lock()
        self.episodes: list[int] = []


async def move(one: Buffer, other: Buffer, as_asked: bool) -> None:
    first, second = (one, other) if as_asked or one.number < other.number else (other, one)
    await asyncio.sleep(kit.pause() * 0.2 if not as_asked else 0.0)
    async with first.lock:
        await asyncio.sleep(kit.pause() * 0.6)
        async with second.lock:
            await asyncio.sleep(kit.pause() * 0.6)
            other.episodes.append(len(one.episodes))


async def tell() -> None:
    n = 0
    while True:
        await asyncio.sleep(1.0)
        n += 1
        (kit.folder() / "heartbeat").write_text(str(n))


async def main() -> None:
    telling = asyncio.create_task(tell())
    fresh, old = Buffer(0), Buffer(1)
    for step in range(1, 10**6):
        differs = kit.differs(step)
        await asyncio.gather(move(fresh, old, differs), move(old, fresh, differs))
        kit.step(step)
    await telling


if __name__ == "__main__":
    kit.begin()
    asyncio.run(main())
