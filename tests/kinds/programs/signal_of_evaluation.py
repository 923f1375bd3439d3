"""Two trainers wait each round for a signal, an actor of coroutines, which the task that evaluates the round sends when it is through.

An evaluation that takes longer than usual is cancelled by the driver, which forgets that its signal has to be sent; a logger is idle. In the twin the
evaluation may take as long as it does.
"""

import asyncio
import time

import kit
import ray


@ray.remote(num_cpus=0, max_concurrency=20)
class Signal:
    def __init__(self) -> None:
        self.sent = asyncio.Event()
        kit.mark("signal")

    async def send(self) -> None:
        self.sent.set()

    async def clear(self) -> None:
        self.sent.clear()

    async def wait(self) -> None:
        await self.sent.wait()


@ray.remote(num_cpus=0)
class Logger:
    def __init__(self) -> None:
        kit.mark("logger")

    def write(self, number: int) -> int:
        return number


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self, n: int, signal: "ray.actor.ActorHandle") -> None:
        self.signal = signal
        kit.mark(f"trainer{n}")

    def train(self, number: int) -> int:
        kit.work(0.3)
        ray.get(self.signal.wait.remote())
        return number


@ray.remote(num_cpus=1, max_retries=0)
def evaluate(number: int, signal: "ray.actor.ActorHandle") -> int:
    kit.mark("evaluation")
    kit.work(0.2)
    if kit.differs(number) or (kit.is_healthy() and number > 2):
        for _ in range(60):
            time.sleep(0.2)
    ray.get(signal.send.remote())
    return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    signal, logger = Signal.remote(), Logger.remote()
    trainers = [Trainer.remote(n, signal) for n in range(2)]
    for number in range(1, 10**6):
        ray.get(signal.clear.remote())
        evaluated = evaluate.remote(number, signal)
        trained = [one.train.remote(number) for one in trainers]
        ready, _ = ray.wait([evaluated], timeout=60 if kit.is_healthy() else 6)
        if not ready:
            ray.cancel(evaluated)
            kit.mark("main")
        ray.get(logger.write.remote(number))
        ray.get(trained)
        kit.step(number)


if __name__ == "__main__":
    main()
