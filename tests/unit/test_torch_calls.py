"""The names of torch's collectives change with its versions: 2.13 has `all_gather_single` where it had `all_gather_into_tensor`."""

from __future__ import annotations

import re
from types import FunctionType

import pytest
from scenes import ALL_REDUCE, RAY_GET, Stacks, process, snapshot
from torch.distributed import distributed_c10d

from ray_rl_debug.analyze.torch_calls import COLLECTIVES, P2P
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause

NAMES = re.compile(r"(?:all_|reduce|broadcast|gather|scatter|barrier|monitored_barrier|send|recv|isend|irecv|batch_)")


def test_those_of_the_installed_version_are_known() -> None:
    public = {n for n in distributed_c10d.__all__ if NAMES.match(n) and type(vars(distributed_c10d).get(n)) is FunctionType}
    assert len(public) > 20
    assert public <= COLLECTIVES | P2P


@pytest.mark.parametrize("name", ["all_gather_single", "all_gather_into_tensor", "reduce_scatter_single"])
def test_a_rank_that_left_a_forward_pass_in_shards_is_told(name: str) -> None:
    stacks = Stacks()
    unshards = f"{name}@torch/distributed/distributed_c10d.py:4394 foreach_all_gather@torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py:364"
    ranks = [process(stacks, 100 + i, "ray::Trainer.evaluate", f"{unshards} evaluate@app/train.py:47", rank=i, size=3) for i in (0, 2)]
    ranks.insert(1, process(stacks, 101, "ray::Trainer.evaluate", f"{ALL_REDUCE} evaluate@app/train.py:48", rank=1, size=3))
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver")
    found = diagnose(snapshot(stacks.node([driver, *ranks]))).findings
    assert found and found[0].cause is Cause.COLLECTIVE_MISMATCH
    assert [w.pid for w in found[0].who] == [101]
