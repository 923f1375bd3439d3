"""A sampler of Ray is asynchronous and hands its prompts to threads; a thread swallows an error and never fills the future of one episode."""

import asyncio
import queue
import threading
import time
from typing import Any

import ray
from kit import begin, differs, mark, pause, step, work


@ray.remote(max_concurrency=20)
class Sampler:
    def __init__(self) -> None:
        mark("sampler")
        self.prompts: queue.Queue[Any] = queue.Queue()
        for _ in range(2):
            threading.Thread(target=self.decode, daemon=True).start()

    def decode(self) -> None:
        while True:
            loop, answer, number, prompt = self.prompts.get()
            try:
                work(0.3)
                if prompt == 2 and differs(number):
                    raise ValueError("no such token")
                loop.call_soon_threadsafe(answer.set_result, number)
            except ValueError as error:
                print(error)

    async def episode(self, number: int, prompt: int) -> int:
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        self.prompts.put((loop, answer, number, prompt))
        await asyncio.sleep(pause() * 0.2)
        return int(await answer)

    async def status(self) -> int:
        return self.prompts.qsize()


def look(sampler: Any) -> None:
    while True:
        ray.get(sampler.status.remote())
        time.sleep(0.5)


def main() -> None:
    begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    mark("cluster", address=ray.get_runtime_context().gcs_address)
    sampler = Sampler.remote()
    threading.Thread(target=look, args=(sampler,), daemon=True).start()
    for number in range(10**6):
        ray.get([sampler.episode.remote(number, prompt) for prompt in range(4)])
        work(0.3)
        step(number)


if __name__ == "__main__":
    main()
