"""A program has two loops in two threads, one for rollouts and one for rewards; each asks the other by futures, and rollouts have a lock of weights.

Once a reward asks the loop of rollouts for the weights, while the rollout that waits for this reward holds the lock. In the twin it asks for none,
and a reward is long.
"""

from __future__ import annotations

import asyncio
import threading

import kit


class Loop:
    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name=name, daemon=True).start()


rollouts, rewards = Loop("rollouts"), Loop("rewards")
weights = asyncio.Lock()


async def version() -> int:
    async with weights:
        return 1


async def reward(step: int, number: int) -> float:
    await asyncio.sleep(kit.pause() * 0.2)
    if kit.is_late(step) and number == 1:
        await asyncio.sleep(kit.LONG_S)
    if kit.differs(step) and number == 1:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(version(), rollouts.loop))
    return 1.0


async def rollout(step: int, number: int) -> float:
    await asyncio.sleep(kit.pause() * 0.1)
    async with weights:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(reward(step, number), rewards.loop))


async def play(step: int) -> float:
    return sum(await asyncio.gather(*(rollout(step, number) for number in range(3))))


def main() -> None:
    kit.begin()
    for step in range(1, 10**6):
        asyncio.run_coroutine_threadsafe(play(step), rollouts.loop).result()
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    main()
