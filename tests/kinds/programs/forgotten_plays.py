"""A collector, an actor of coroutines, starts a task for each play and takes the episodes from a queue; an engine's thread answers by futures.

The engine keeps the futures weakly, and the loop keeps tasks weakly. Usually the collector keeps its tasks; once it does not, and the collector
of garbage takes a play that waits for its answer. In the twin the engine takes half a minute for an answer.
"""

from __future__ import annotations

import asyncio
import gc
import queue
import threading
import time
import weakref
from typing import Any

import kit
import ray


@ray.remote(num_cpus=0)
class Collector:
    def __init__(self) -> None:
        kit.mark("collector")
        self.prompts: queue.SimpleQueue[tuple[int, int]] = queue.SimpleQueue()
        self.asked: weakref.WeakValueDictionary[tuple[int, int], Any] = weakref.WeakValueDictionary()
        self.plays: set[Any] = set()
        self.loop: Any = None

    def generate(self) -> None:
        while True:
            prompt = self.prompts.get()
            time.sleep(kit.LONG_S if kit.is_late(prompt[0]) else 0.4)
            self.loop.call_soon_threadsafe(self.answer, prompt)

    def answer(self, prompt: tuple[int, int]) -> None:
        if (future := self.asked.get(prompt)) is not None:
            future.set_result(prompt[0])

    async def play(self, prompt: tuple[int, int], episodes: Any) -> None:
        future = asyncio.get_running_loop().create_future()
        self.asked[prompt] = future
        self.prompts.put(prompt)
        await future
        episodes.put_nowait(prompt)

    async def batch(self, number: int) -> int:
        if self.loop is None:
            self.loop = asyncio.get_running_loop()
            threading.Thread(target=self.generate, name="engine", daemon=True).start()
        episodes: asyncio.Queue[Any] = asyncio.Queue()
        for one in range(3):
            play = asyncio.ensure_future(self.play((number, one), episodes))
            if not kit.differs(number):
                self.plays.add(play)
                play.add_done_callback(self.plays.discard)
            del play
        await asyncio.sleep(0.1)
        gc.collect()
        return len([await episodes.get() for _ in range(3)])


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self) -> None:
        kit.mark("trainer")

    def train(self, size: int) -> int:
        kit.work(0.2)
        return size


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    collector, trainer = Collector.remote(), Trainer.remote()
    for number in range(1, 10**6):
        ray.get(trainer.train.remote(collector.batch.remote(number)))
        kit.step(number)


if __name__ == "__main__":
    main()
