"""Rollout actors look for the store of weights by its name; the driver makes it only once they have answered.

In the twin the driver makes it beside, after some seconds, and the actors find it.
"""

import threading
import time

import kit
import ray


@ray.remote
class Store:
    def __init__(self, number):
        kit.mark("store")
        self.number = number

    def version(self):
        return self.number


@ray.remote
class Rollout:
    def __init__(self, n):
        self.n = n
        kit.mark(f"rollout{n}")

    def connect(self, number):
        """Until the store of this round is there."""
        kit.mark(f"rollout{self.n}")
        while True:
            try:
                self.store = ray.get_actor(f"weights{number}")
                return number
            except ValueError:
                time.sleep(0.5)

    def generate(self, number):
        kit.work(0.5)
        return ray.get(self.store.version.remote())


def main():
    kit.begin()
    ray.init(num_cpus=4, include_dashboard=False, namespace="runs", object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    actors = [Rollout.remote(n) for n in range(2)]
    for number in range(1, 100000):
        stores = []

        def make(number=number, stores=stores):
            stores.append(Store.options(name=f"weights{number}").remote(number))

        if kit.differs(number):
            kit.mark("main")
            ray.get([actor.connect.remote(number) for actor in actors])
            make()
        elif kit.is_healthy():
            threading.Timer(7 if number % 3 == 0 else 0.2, make).start()
            ray.get([actor.connect.remote(number) for actor in actors])
        else:
            make()
            ray.get([actor.connect.remote(number) for actor in actors])
        ray.get([actor.generate.remote(number) for actor in actors])
        kit.step(number)


if __name__ == "__main__":
    main()
