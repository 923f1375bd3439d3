"""An actor of Ray loads the scoring plugin of each task when it meets the first sample of it.

One plugin makes its tables in a pool while it is imported, and the pool's thread imports from the same plugin: it waits for the import that waits for
it. In the twin the tables are made on the spot, and slowly.
"""

from __future__ import annotations

import importlib
import sys

import kit
import ray

PLUGIN = """
import kit
from concurrent.futures import ThreadPoolExecutor

def one(n):
    from plugin_{number} import SCALE
    return n * SCALE

def made():
    if kit.differs({number}):
        return list(ThreadPoolExecutor(2).map(one, range(4)))
    kit.work(4.0)
    return list(range(4))

TABLES = made()
SCALE = 2
"""


@ray.remote(num_cpus=0)
class Scorer:
    def __init__(self) -> None:
        kit.mark("scorer")
        sys.path.append(str(kit.folder()))

    def score(self, number: int) -> int:
        plugin = importlib.import_module(f"plugin_{number}")
        return sum(plugin.TABLES)


@ray.remote(num_cpus=0)
class Sampler:
    def __init__(self) -> None:
        kit.mark("sampler")

    def sample(self, number: int) -> int:
        kit.work(0.3)
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    scorer, sampler = Scorer.remote(), Sampler.remote()
    for number in range(1, 10**6):
        (kit.folder() / f"plugin_{number}.py").write_text(PLUGIN.format(number=number))
        ray.get(scorer.score.remote(sampler.sample.remote(number)))
        kit.step(number)


if __name__ == "__main__":
    main()
