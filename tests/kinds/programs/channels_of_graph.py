"""Three actors in a compiled graph of Ray pass a batch on through channels in shared memory; the second one stands in a read."""

from __future__ import annotations

import os

os.environ.update(RAY_CGRAPH_get_timeout="3600", RAY_CGRAPH_submit_timeout="3600")

import kit
import ray
from ray.dag import InputNode


@ray.remote(num_cpus=0)
class Stage:
    def __init__(self, n: int) -> None:
        self.n = n
        kit.mark(f"stage{n}")

    def forward(self, batch: int) -> int:
        kit.work(0.2)
        if self.n == 1 and kit.differs(batch):
            kit.mark("stage1")
            with open(kit.fifo("activations")) as file:
                file.read()
        return batch


if __name__ == "__main__":
    kit.begin()
    info = ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20)
    stages = [Stage.remote(n) for n in range(3)]
    with InputNode() as batch:
        at = batch
        for stage in stages:
            at = stage.forward.bind(at)
    graph = at.experimental_compile()
    kit.mark("cluster", address=info["gcs_address"])
    for step in range(1, 10**6):
        ray.get(graph.execute(step))
        kit.step(step)
