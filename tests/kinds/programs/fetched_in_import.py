"""Each round a task of Ray plays with an environment whose module is unpickled in the worker; unpickling asks a registry, an actor, for its tables.

Once the registry has them made by a task that asks for a table, and an idle viewer keeps the only one. In the twin the registry takes half a minute.
"""

from __future__ import annotations

import time

import kit
import ray


class Environment:
    def __init__(self, number: int, registry: ray.actor.ActorHandle) -> None:
        self.number, self.registry = number, registry

    def __reduce__(self):  # type: ignore[no-untyped-def]
        return make, (self.number, self.registry)


def make(number: int, registry: ray.actor.ActorHandle) -> Environment:
    ray.get(registry.tables.remote(number))
    return Environment(number, registry)


@ray.remote(num_cpus=1, max_retries=0)
def play(environment: Environment) -> int:
    kit.work(0.2)
    return environment.number


@ray.remote(num_cpus=1, max_retries=0)
def tabulate(number: int) -> int:
    return number


@ray.remote(num_cpus=0)
class Registry:
    def __init__(self) -> None:
        kit.mark("registry")

    def tables(self, number: int) -> int:
        if kit.is_late(number):
            time.sleep(kit.LONG_S)
        if kit.differs(number):
            kit.mark("registry")
            return ray.get(tabulate.options(resources={"table": 1}).remote(number))
        return number


@ray.remote(num_cpus=0, resources={"table": 1})
class Viewer:
    def __init__(self) -> None:
        kit.mark("viewer")

    def look(self) -> int:
        return 1


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, resources={"table": 1}, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    registry, viewer = Registry.remote(), Viewer.remote()
    ray.get(viewer.look.remote())
    for number in range(1, 10**6):
        ray.get(play.remote(Environment(number, registry)))
        kit.step(number)


if __name__ == "__main__":
    main()
