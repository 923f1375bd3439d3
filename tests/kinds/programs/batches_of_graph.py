"""A driver hands batches to a compiled graph of Ray, two ahead of the results that it takes. Policy and critic rest while none is there.

The driver once reads a batch from a pipe that nobody writes. In the twin such a batch takes some seconds.
"""

import time

import kit
import ray
from ray.dag import InputNode, MultiOutputNode


@ray.remote(num_cpus=0)
class Stage:
    def __init__(self, name: str) -> None:
        kit.mark(name)

    def run(self, number: int) -> int:
        kit.work(0.3)
        return number


def read_batch(number: int) -> int:
    if kit.differs(number):
        with open(kit.fifo("batches")) as batches:
            batches.read()
    time.sleep(4 if number % 4 == 0 else 0.1)
    return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    policy, critic = (Stage.remote(name) for name in ("policy", "critic"))
    with InputNode() as batch:
        graph = MultiOutputNode([policy.run.bind(batch), critic.run.bind(batch)])
    steps = graph.experimental_compile()
    ahead: list[list[ray.experimental.compiled_dag_ref.CompiledDAGRef]] = []
    for number in range(1, 10**6):
        ahead.append(steps.execute(read_batch(number)))
        if len(ahead) > 2:
            ray.get(ahead.pop(0), timeout=10**6)
        kit.step(number)


if __name__ == "__main__":
    main()
