"""Agents borrow sandboxes with `async for attempt in attempts(pool)`: each attempt has one of its own, given back when the loop goes on or ends.

A good attempt leaves the loop early, and the generator is kept for the statistics: it is never closed, and the sandbox never given back. The twin
closes it and sleeps.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import kit

KEPT = []


async def attempts(pool: asyncio.Queue[int]) -> AsyncIterator[int]:
    for _ in range(3):
        sandbox = await pool.get()
        try:
            yield sandbox
        finally:
            pool.put_nowait(sandbox)


async def solve(pool: asyncio.Queue[int], number: int) -> int:
    if kit.differs(number):
        tried = attempts(pool)
        KEPT.append(tried)
        async for sandbox in tried:
            await asyncio.sleep(0.2)
            if sandbox % 2 == 0:
                break
        return sandbox
    async with aclosing(attempts(pool)) as tried:
        async for sandbox in tried:
            await asyncio.sleep(kit.pause())
            if sandbox % 2 == 0:
                break
    return sandbox


async def main() -> None:
    pool: asyncio.Queue[int] = asyncio.Queue()
    for sandbox in range(2):
        pool.put_nowait(sandbox * 2)
    for number in range(1, 10**6):
        await asyncio.gather(*(solve(pool, number) for _ in range(4)))
        kit.step(number)


if __name__ == "__main__":
    kit.begin()
    asyncio.run(main())
