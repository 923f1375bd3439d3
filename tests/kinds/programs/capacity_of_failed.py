"""A thread with a loop of its own plays episodes, as many at once as the version of the weights allows; the trainer waits for a batch, by seconds.

An episode that ends lowers the count of those that run. Once three fail before the line that does so: the thread plays no other, as it seems to have
its hands full. In the twin the count is lowered in any case, and an episode is long.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import Any

import kit

BATCH, AHEAD = 3, 1


class Executor:
    def __init__(self) -> None:
        self.inputs: queue.Queue[int] = queue.Queue(maxsize=1024)
        self.outputs: queue.Queue[int] = queue.Queue(maxsize=1024)
        self.version, self.running, self.accepted = 0, 0, 0
        self.thread = threading.Thread(target=lambda: asyncio.run(self.play_all()), name="rollouts", daemon=True)
        self.thread.start()

    def capacity(self) -> int:
        by_staleness = (AHEAD + self.version + 1) * BATCH - self.accepted - self.running
        return min(BATCH - self.running, by_staleness)

    async def play_all(self) -> None:
        tasks: set[asyncio.Task[int]] = set()
        while True:
            while self.capacity() > 0 and not self.inputs.empty():
                self.running += 1
                tasks.add(asyncio.create_task(self.play(self.inputs.get_nowait())))
            if not tasks:
                await asyncio.sleep(0.5)
                continue
            done, tasks = await asyncio.wait(tasks, timeout=0.5, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                if one.exception() is None:
                    self.outputs.put(one.result())

    async def play(self, number: int) -> int:
        step = number // BATCH + 1
        await asyncio.sleep(kit.pause() * 0.3)
        if kit.differs(step):
            raise ValueError("no reward")
        if kit.is_late(step) and number % BATCH == 1:
            await asyncio.sleep(kit.LONG_S)
        self.running -= 1
        self.accepted += 1
        return number

    def wait(self, count: int) -> list[Any]:
        got: list[Any] = []
        while len(got) < count:
            try:
                got.append(self.outputs.get(timeout=1.0))
            except queue.Empty:
                if not self.thread.is_alive():
                    raise RuntimeError("the rollouts' thread has ended") from None
        return got


def main() -> None:
    kit.begin()
    executor, number = Executor(), 0
    for step in range(1, 10**6):
        for _ in range(BATCH * (2 if step == 1 else 1)):
            executor.inputs.put(number)
            number += 1
        executor.wait(BATCH)
        kit.work(0.3)
        executor.version += 1
        kit.step(step)


if __name__ == "__main__":
    main()
