"""An agent's tool has a synchronous face that hands its coroutine to the loop and waits; called from a coroutine, it waits for its own loop."""

from __future__ import annotations

import asyncio

import kit


class Search:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop

    async def look_up(self, number: int) -> str:
        await asyncio.sleep(kit.pause() * 0.3)
        return f"page {number}"

    def __call__(self, number: int) -> str:
        """For code that has no loop."""
        return asyncio.run_coroutine_threadsafe(self.look_up(number), self.loop).result()


async def agent() -> None:
    search = Search(asyncio.get_running_loop())
    for step in range(1, 10**6):
        if kit.differs(step):
            kit.mark("main")
            search(step)
        else:
            await asyncio.to_thread(search, step)
        kit.step(step)


if __name__ == "__main__":
    kit.begin()
    asyncio.run(agent())
