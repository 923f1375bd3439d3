"""A store of weights is an actor of coroutines: it keeps a lock while it awaits that an engine has loaded; the engine does one call after another.

The engine asks the store for the version before it answers a prompt. Once the store publishes while the engine answers: the question waits for the
lock, and the load stands behind the answer. In the twin a load is once long, and an evaluator waits for the lock.
"""

import asyncio
import time

import kit
import ray


@ray.remote(num_cpus=0, max_concurrency=20)
class Store:
    def __init__(self) -> None:
        self.number = 0
        self.lock = asyncio.Lock()
        kit.mark("store")

    async def set_engine(self, engine: "ray.actor.ActorHandle") -> None:
        self.engine = engine

    async def publish(self, number: int) -> int:
        async with self.lock:
            await self.engine.load.remote(number)
            self.number = number
        return number

    async def version(self) -> int:
        async with self.lock:
            return self.number


@ray.remote(num_cpus=0)
class Engine:
    def __init__(self, store: "ray.actor.ActorHandle") -> None:
        self.store = store
        kit.mark("engine")

    def load(self, number: int) -> int:
        kit.work(0.3)
        if kit.is_healthy() and number > 2:
            time.sleep(12)
        return number

    def answer(self, prompt: int, is_late: bool) -> tuple[int, int]:
        kit.work(0.3)
        if is_late:
            time.sleep(1.5)
        version = ray.get(self.store.version.remote())
        return prompt, version


@ray.remote(num_cpus=0)
class Evaluator:
    def __init__(self, store: "ray.actor.ActorHandle") -> None:
        self.store = store
        kit.mark("evaluator")

    def evaluate(self) -> int:
        kit.work(0.2)
        return ray.get(self.store.version.remote())


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    store = Store.remote()
    engine, evaluator = Engine.remote(store), Evaluator.remote(store)
    ray.get(store.set_engine.remote(engine))
    for number in range(1, 10**6):
        is_late = kit.differs(number)
        answers = [engine.answer.remote(prompt, is_late) for prompt in range(3)]
        if not is_late:
            ray.get(answers)
        time.sleep(0.5)
        published = store.publish.remote(number)
        ray.get([*answers, published, evaluator.evaluate.remote()])
        kit.step(number)


if __name__ == "__main__":
    main()
