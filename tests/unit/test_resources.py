"""RRD402: what is asked for, what the cluster has, and who has it now."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import NODE_ID, RAY_GET, Stacks, core, process, ray_state, snapshot, task_id

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Finding
from ray_rl_debug.model.snapshot import OwnedTask, RayNode, RayTask, Snapshot


def nested(resource: str, *, asked: float = 1.0, there: float = 2.0) -> Snapshot:
    """Two trainings that hold one of a resource each, and wait for an evaluation that asks for it too."""
    stacks = Stacks()
    pending = [RayTask(task_id=task_id(10 + i), name="evaluate", state="PENDING_NODE_ASSIGNMENT", resources={resource: asked}) for i in range(2)]
    running = [RayTask(task_id=task_id(i), name="train", state="RUNNING", kind="NORMAL_TASK", resources={resource: 1.0}) for i in range(2)]
    waits = f"{RAY_GET} train@app/train.py:8"
    ones = [process(stacks, 100 + i, "ray::train", waits, refs=[task_id(10 + i)]) for i in range(2)]
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(0), task_id(1)])
    cores = [core(100 + i, running=[i], owned=[OwnedTask(task_id=task_id(10 + i), name="evaluate")]) for i in range(2)]
    taken = snapshot(stacks.node([driver, *ones]), ray_state(tasks=[*pending, *running], cores=cores))
    assert taken.ray is not None
    node = RayNode(node_id=NODE_ID, ip="10.0.0.1", host="node1", alive=True, resources={"CPU": 4.0, resource: there, "memory": 1e9})
    return replace(taken, ray=replace(taken.ray, nodes=(node,)))


def finding(taken: Snapshot) -> Finding:
    return next(f for f in diagnose(taken).findings if f.id == "RRD402")


def test_who_holds_what_is_asked_for_is_told() -> None:
    told = finding(nested("device"))
    assert told.certainty is Certainty.LIKELY
    assert [e.text for e in told.evidence if e.text.startswith("holds ")] == ["holds 1 device, and waits in ray.get in train (train.py:8)"] * 2


def test_a_task_that_waits_for_ray_has_lent_its_cores() -> None:
    assert not any(e.text.startswith("holds ") for e in finding(nested("CPU")).evidence)


@pytest.mark.parametrize(
    ("resource", "certainty"), [("device", Certainty.PROVEN), ("CPU_group_0_ab12", Certainty.LIKELY), ("node:10.0.0.9", Certainty.LIKELY)]
)
def test_a_resource_of_ones_own_that_the_cluster_lacks(resource: str, certainty: Certainty) -> None:
    """What Ray derives itself (bundles of placement groups, marks of nodes) comes and goes, and is not counted."""
    told = finding(nested(resource, asked=3.0))
    assert told.certainty is certainty
    assert ("3 device asked, 2 in the cluster" in told.summary) is (resource == "device")
