"""RRD402: what is asked for, what the cluster has, and who has it now."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import EXECUTOR, MAIN, NODE_ID, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Finding, State
from ray_rl_debug.model.snapshot import OwnedTask, RayNode, RayPlacementGroup, RayTask, Snapshot


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


def captured(*, trainer_waits: bool = True) -> Snapshot:
    """A trainer that has the only bundle of its group, and waits (or not) for a task that is to run in that group."""
    stacks = Stacks()
    pg = "ab" * 18
    pending = RayTask(task_id=task_id(10), name="score", state="PENDING_NODE_ASSIGNMENT", resources={"CPU": 1.0}, placement_group_id=pg)
    where = f"{RAY_GET} step@app/train.py:8" if trainer_waits else "load@app/train.py:5"
    trainer = process(stacks, 100, "ray::Trainer.step", f"{where} {EXECUTOR} {MAIN}", refs=[task_id(10)] if trainer_waits else [])
    driver = process(
        stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(0), *([] if trainer_waits else [task_id(10)])]
    )
    one = actor(0, "Trainer", 100, resources={"CPU": 1.0}, placement_group_id=pg, bundle=0)
    owned = [OwnedTask(task_id=task_id(10), name="score")]
    cores = [core(100, running=[0], actor_number=0, owned=owned if trainer_waits else []), core(1, owned=[] if trainer_waits else owned)]
    made = RayPlacementGroup(placement_group_id=pg, state="CREATED", name="pool", bundles=({"CPU": 1.0},))
    taken = snapshot(stacks.node([driver, trainer]), ray_state(actors=[one], tasks=[pending], cores=cores, groups=[made]))
    assert taken.ray is not None
    node = RayNode(node_id=NODE_ID, ip="10.0.0.1", host="node1", alive=True, resources={"CPU": 4.0})
    return replace(taken, ray=replace(taken.ray, nodes=(node,)))


def test_who_holds_the_room_of_its_group_and_waits_for_what_needs_it() -> None:
    """More nodes would not help; only the group's room would, or another place for the task."""
    told = finding(captured())
    assert told.summary.endswith("Trainer holds it, and itself waits for what was not placed")
    assert told.certainty is Certainty.LIKELY
    assert any("placement_group=None" in line for line in told.remedy)
    assert not any("or add nodes" in line for line in told.remedy)


def test_who_holds_the_room_of_its_group_and_waits_for_nobody_may_give_it_back() -> None:
    told = [f for f in diagnose(captured(trainer_waits=False)).findings if f.id == "RRD402"]
    assert not any("itself waits" in f.summary for f in told)


@pytest.mark.parametrize(
    ("selector", "labels", "is_met"),
    [
        ("south", {"zone": "north"}, False),
        ("south", {"zone": "south"}, True),
        ("south", {}, False),
        ("!south", {"zone": "north"}, True),
        ("!south", {"zone": "south"}, False),
        ("in(south,west)", {"zone": "west"}, True),
        ("in(south,west)", {"zone": "north"}, False),
        ("!in(south,west)", {"zone": "west"}, False),
        ("!in(south,west)", {}, True),
        ("south", None, None),
    ],
)
def test_labels_that_an_actor_wants_of_its_node(selector: str, labels: dict[str, str] | None, is_met: bool | None) -> None:
    """None: what the nodes have was not read, and it is not sure."""
    stacks = Stacks()
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(0)])
    asked = RayTask(task_id=task_id(0), name="Engine.generate", state="PENDING_ACTOR_TASK_ARGS_FETCH", kind="ACTOR_TASK", actor_id=f"{0:032x}")
    engine = actor(0, "Engine", None, state="PENDING_CREATION", wanted_labels={"zone": selector})
    taken = snapshot(stacks.node([driver]), ray_state(actors=[engine], tasks=[asked], cores=[core(1, owned=[])]))
    assert taken.ray is not None
    node = RayNode(node_id=NODE_ID, ip="10.0.0.1", host="node1", alive=True, resources={"CPU": 4.0}, labels=labels)
    told = finding(replace(taken, ray=replace(taken.ray, nodes=(node,))))
    wants = f"actor Engine is PENDING_CREATION: no node has the labels that it wants: zone={selector}"
    assert (told.summary == wants) is (is_met is False)
    assert (told.certainty is Certainty.PROVEN) is (is_met is False)


def test_tasks_that_end_give_a_placement_group_its_room() -> None:
    """A task that pauses holds the core that the group asks for: it will be free. Not where two are asked for, nor where the holder was not read."""
    for bundles, holders, sure in ((1, 1, Certainty.POSSIBLE), (2, 1, Certainty.LIKELY), (1, 0, Certainty.POSSIBLE)):
        taken = group("PACK", *[{"CPU": 1.0}] * bundles, nodes=({"CPU": 2.0},))
        stacks = Stacks()
        holder = process(stacks, 7, "ray::tabulate", f"tabulate@app/t.py:4 {EXECUTOR} {MAIN}", wchan="hrtimer_nanosleep", syscall=230)
        driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(5)])
        trainer = process(stacks, 8, "ray::Trainer", MAIN)
        assert taken.ray is not None
        runs = [RayTask(task_id=task_id(7), name="tabulate", state="RUNNING", kind="NORMAL_TASK", resources={"CPU": 1.0})] * holders
        ray = replace(
            taken.ray,
            nodes=tuple(replace(n, available={"CPU": 0.0}) for n in taken.ray.nodes),
            actors=(actor(0, "Trainer", 8, resources={"CPU": 1.0}),),
            tasks=(*taken.ray.tasks, *runs),
            core_workers=(*taken.ray.core_workers, core(7, running=[7] * holders), core(8, actor_number=0)),
        )
        told = finding(replace(taken, nodes=(stacks.node([driver, holder, trainer]),), ray=ray))
        assert told.certainty is sure, (bundles, holders)


def group(strategy: str, *bundles: dict[str, float], nodes: tuple[dict[str, float], ...]) -> Snapshot:
    """A driver that waits for a placement group."""
    stacks = Stacks()
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(5)])
    asked = RayPlacementGroup(placement_group_id="ab" * 18, state="PENDING", name="pool", bundles=bundles, strategy=strategy)
    waits = RayTask(task_id=task_id(5), name="bundle_reservation_check_func", state="PENDING_NODE_ASSIGNMENT", placement_group_id="ab" * 18)
    taken = snapshot(stacks.node([driver]), ray_state(tasks=[waits], groups=[asked], cores=[core(1, owned=[])]))
    assert taken.ray is not None
    rows = tuple(RayNode(node_id=f"{i:056x}", ip=f"10.0.0.{i}", host=f"node{i}", alive=True, resources=n) for i, n in enumerate(nodes, 1))
    return replace(taken, ray=replace(taken.ray, nodes=rows))


FOUR = {"CPU": 8.0, "GPU": 4.0}


@pytest.mark.parametrize(
    ("strategy", "bundles", "nodes", "wanted"),
    [
        ("PACK", ({"GPU": 8.0},), (FOUR, FOUR), "no single node has 8 GPU, and Ray never splits a bundle, an actor or a task"),
        ("STRICT_PACK", ({"GPU": 4.0}, {"GPU": 1.0}), (FOUR, FOUR), "STRICT_PACK wants all of it on one node, and no single node has 5 GPU"),
        (
            "STRICT_SPREAD",
            ({"CPU": 1.0},) * 3,
            (FOUR, FOUR),
            "STRICT_SPREAD puts each of its 3 bundles on a node of its own, and the cluster has 2",
        ),
        (
            "STRICT_SPREAD",
            ({"GPU": 1.0},) * 2,
            (FOUR, {"CPU": 8.0}),
            "STRICT_SPREAD puts each of its 2 bundles on a node of its own, and 1 of 2 nodes have what one asks for",
        ),
    ],
)
def test_a_group_that_no_placement_fits(
    strategy: str, bundles: tuple[dict[str, float], ...], nodes: tuple[dict[str, float], ...], wanted: str
) -> None:
    told = finding(group(strategy, *bundles, nodes=nodes))
    assert (told.summary, told.certainty) == (f"placement group pool is PENDING: {wanted}", Certainty.PROVEN)


@pytest.mark.parametrize(
    ("strategy", "bundles"), [("SPREAD", ({"CPU": 1.0},) * 3), ("PACK", ({"GPU": 4.0},) * 2), ("STRICT_PACK", ({"GPU": 4.0, "memory": 9e9},))]
)
@pytest.mark.parametrize(
    ("available", "certainty"),
    [(FOUR, Certainty.LIKELY), ({"GPU": 1.0}, Certainty.POSSIBLE), (None, Certainty.POSSIBLE)],
    ids=["all", "some", "unread"],
)
def test_a_group_that_the_cluster_could_hold(
    strategy: str, bundles: tuple[dict[str, float], ...], available: dict[str, float] | None, certainty: Certainty
) -> None:
    """Who holds what is in use and stands in none of Ray's tables may give it back."""
    taken = group(strategy, *bundles, nodes=(FOUR, FOUR))
    assert taken.ray is not None
    told = finding(replace(taken, ray=replace(taken.ray, nodes=tuple(replace(n, available=available) for n in taken.ray.nodes))))
    assert told.summary.endswith("the cluster is large enough, but who holds the resources was not seen")
    assert told.certainty is certainty


def restarting(*, holder_works: bool = False, free: bool = False) -> Snapshot:
    """An engine that is to be made anew, while an evaluator has the core that it had."""
    stacks = Stacks()
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(0)])
    evaluator = process(
        stacks, 100, "ray::Evaluator", f"score@app/evaluate.py:5 {EXECUTOR} {MAIN}" if holder_works else MAIN, cpu_s=1.9 * holder_works
    )
    engine = actor(1, "Engine", 99, state="RESTARTING", restarts=1, resources={"CPU": 1.0})
    holder = actor(2, "Evaluator", 100, resources={"CPU": 1.0})
    call = RayTask(
        task_id=task_id(0), name="Engine.generate", state="PENDING_ACTOR_TASK_ARGS_FETCH", actor_id=engine.actor_id, state_times_s={"RUNNING": 1.0}
    )
    cores = [core(100, actor_number=2)]
    taken = snapshot(stacks.node([driver, evaluator]), ray_state(actors=[engine, holder], tasks=[call], cores=cores))
    assert taken.ray is not None
    node = RayNode(node_id=NODE_ID, ip="10.0.0.1", host="node1", alive=True, resources={"CPU": 2.0 if free else 1.0})
    return replace(taken, ray=replace(taken.ray, nodes=(node,)))


def test_an_actor_whose_room_is_taken_before_it_is_made_anew_waits_for_room() -> None:
    report = diagnose(restarting())
    assert [(f.id, f.certainty) for f in report.findings] == [("RRD402", Certainty.LIKELY)]
    assert report.findings[0].summary.startswith("actor Engine is RESTARTING: the cluster is large enough")


def test_who_has_the_room_and_works_may_be_through_soon() -> None:
    told = finding(restarting(holder_works=True))
    assert told.certainty is Certainty.POSSIBLE
    assert "one of them is at work" in told.summary


def test_an_actor_with_room_to_be_made_anew_is_dead_as_before() -> None:
    assert [f.id for f in diagnose(restarting(free=True)).findings] == ["RRD205"]


def starting(*, cores: float = 4.0, slices: int = 0) -> Snapshot:
    """An actor that has room and no process yet, and a program that a raylet has started, which ran so often during the window."""
    stacks = Stacks()
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(0)])
    program = process(stacks, 200, "/bin/bash start.sh default_worker.py", MAIN)
    opens = replace(program.threads[0], comm="bash", call="openat", wchan="wait_for_partner", syscall=None, run_slices=slices)
    program = replace(program, samples=(), threads=(opens,), files=(), sockets=(), context_switches=slices)
    pending = actor(1, "Environment", None, state="PENDING_CREATION", resources={"CPU": 2.0})
    call = RayTask(task_id=task_id(0), name="Environment.play", state="PENDING_ACTOR_TASK_ARGS_FETCH", actor_id=pending.actor_id)
    taken = snapshot(stacks.node([driver, program]), ray_state(actors=[pending], tasks=[call]))
    assert taken.ray is not None
    node = RayNode(node_id=NODE_ID, ip="10.0.0.1", host="node1", alive=True, resources={"CPU": cores})
    return replace(taken, ray=replace(taken.ray, nodes=(node,)))


def test_a_program_that_should_become_a_worker_and_stands_keeps_the_actor() -> None:
    told = finding(starting())
    assert [w.pid for w in told.who] == [200]
    assert "was started for a worker of Ray and is in the system call open; Environment cannot begin" in told.summary


def test_an_actor_without_room_waits_for_no_worker() -> None:
    assert [w.label for w in finding(starting(cores=1.0)).who] == ["Environment"]


def test_a_program_that_should_become_a_worker_and_runs_goes_on() -> None:
    report = diagnose(starting(slices=40))
    assert report.verdict.state is State.SLOW
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)
