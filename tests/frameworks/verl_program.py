"""verl's own worker group on CPUs: three ranks on gloo that train until a word in a file makes one of them go wrong.

``reward``: while the word stands there, rank 2 turns a formula round and round in the reward. ``update``: rank 1 finds its batch empty and leaves
out the all_reduce of the gradients; the other two wait for ever.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import ray
import torch
import torch.distributed as dist
from verl.single_controller.base import Worker
from verl.single_controller.base.decorator import Dispatch, register
from verl.single_controller.ray.base import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup, create_colocated_worker_cls
from verl.utils.distributed import initialize_global_process_group_ray

RANKS = 3


@ray.remote
class PolicyWorker(Worker):
    """A rank that trains a matrix."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = Path(folder)
        self.weights = torch.eye(64)

    def _is_asked_for(self, trouble: str, rank: int) -> bool:
        word = self.folder / "trouble"
        return self.rank == rank and word.exists() and word.read_text() == trouble

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def init_model(self) -> int:
        initialize_global_process_group_ray(timeout_second=3600, backend="cpu:gloo")
        dist.all_reduce(torch.ones(1))
        return os.getpid()

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def compute_rm_score(self) -> float:
        formula = [1.0, 2.0, 3.0]
        if self._is_asked_for("reward", 2):
            (self.folder / "reached").touch()
            formula = self.canonical_form(formula)
        dist.barrier()
        return sum(formula)

    def canonical_form(self, formula: list[float]) -> list[float]:
        """Comes to no end while the word stands in the file."""
        turns = 0
        while turns % 100_000 or self._is_asked_for("reward", 2):
            formula = formula[1:] + formula[:1]
            turns += 1
        return formula

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def compute_log_prob(self) -> float:
        return float((self.weights @ torch.randn(64, 64)).sum())

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def update_actor(self) -> int:
        gradient = torch.randn(64, 64)
        if self._is_asked_for("update", 1):
            (self.folder / "reached").touch()
            return 0
        dist.all_reduce(gradient)
        self.weights -= 1e-4 * gradient
        return 1


@ray.remote(num_cpus=0)
class TaskRunner:
    """Where verl's driver code runs."""

    def run(self, folder: str) -> None:
        pool = RayResourcePool(process_on_nodes=[RANKS], use_gpu=False, max_colocate_count=1, name_prefix="global_pool")
        merged = create_colocated_worker_cls({"actor_rollout_ref": RayClassWithInitArgs(PolicyWorker, folder=folder)})
        group = RayWorkerGroup(resource_pool=pool, ray_cls_with_init=merged, device_name="cpu")
        self.group = group.spawn(prefix_set={"actor_rollout_ref"})["actor_rollout_ref"]
        pids = self.group.init_model()
        self.fit(Path(folder), pids)

    def fit(self, folder: Path, pids: list[int]) -> None:
        step = 0
        while True:
            self.group.compute_log_prob()
            self.group.compute_rm_score()
            self.group.update_actor()
            step += 1
            (folder / "step.part").write_text(json.dumps({"step": step, "ranks": pids, "runner": os.getpid()}))
            os.rename(folder / "step.part", folder / "step")


def main() -> None:
    folder = sys.argv[1]
    ray.init(address="local", num_cpus=RANKS + 1, include_dashboard=False, _temp_dir=f"{folder}/ray", log_to_driver=False)
    print(json.dumps({"address": ray.get_runtime_context().gcs_address, "pid": os.getpid()}), flush=True)
    threading.Thread(target=_end_with_input, daemon=True).start()
    runner = TaskRunner.remote()
    ray.get(runner.run.remote(folder))


def _end_with_input() -> None:
    sys.stdin.read()
    threading.Timer(15, os._exit, (1,)).start()
    ray.shutdown()
    time.sleep(0.1)
    os._exit(0)


if __name__ == "__main__":
    main()
