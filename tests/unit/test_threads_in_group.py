"""Two threads of a rank in collectives: of one group they are a mismatch, each in a group of its own they tell nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.snapshot import Process, ThreadSample

HUNG = Path(__file__).parents[1] / "kinds" / "recorded" / "threads_of_rank_cross-hang.json.gz"


def in_own_group(process: Process) -> Process:
    """The same with its thread of the metrics in the group that is made for it."""
    groups = process.torch.groups if process.torch is not None else ()
    own = next((g.address for g in groups if not g.is_default), None)
    if own is None:
        return process

    def moved(thread: ThreadSample) -> ThreadSample:
        value = f"<torch._C._distributed_c10d.ProcessGroup at {own:#x}>"
        return replace(thread, locals=tuple(replace(x, value=value) if x.name == "group" else x for x in thread.locals))

    samples = [replace(s, threads=tuple(moved(t) if t.name == "metrics" else t for t in s.threads)) for s in process.samples]
    return replace(process, samples=tuple(samples))


@pytest.mark.parametrize("crossed", [True, False])
def test_only_two_collectives_of_one_group_are_a_mismatch(crossed: bool) -> None:
    snapshot = load((HUNG,)).snapshot
    node = snapshot.nodes[0]
    processes = node.processes if crossed else tuple(in_own_group(p) for p in node.processes)
    report = diagnose(replace(snapshot, nodes=(replace(node, processes=processes),)))
    assert [f.id for f in report.findings] == (["RRD102"] if crossed else ["RRD103"])
