"""Members of one process group that do not agree how many they are; groups of several sizes at a time are nothing unusual."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import EXECUTOR, MAIN, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, State
from ray_rl_debug.model.snapshot import Local, Process, Snapshot, Socket

STORE = "_create_c10d_store@torch/distributed/rendezvous.py:190 _tcp_rendezvous_handler@torch/distributed/rendezvous.py:230"
CREATION = "_new_process_group_helper@torch/distributed/distributed_c10d.py:2000"
OWN = f"custom_group@app/groups.py:8 Actor.join@app/actors.py:4 {EXECUTOR} {MAIN}"
PORT = 29600


def member(stacks: Stacks, number: int, rank: int, size: int, *, name: str = "weights", met: bool = True, at_store: bool = False) -> Process:
    """A rank that creates a group; at the store it does not know the group's name yet."""
    locals_ = {"rank": rank, "world_size": size, "port": PORT} if at_store else {"group_rank": rank, "group_size": size, "group_name": f'"{name}"'}
    listener = Socket(fd=8, family="tcp", local=f"0.0.0.0:{PORT}", state="LISTEN")
    client = Socket(fd=9, family="tcp", local="10.0.0.1:40000", remote=f"10.0.0.1:{PORT}", state="ESTABLISHED")
    return process(
        stacks,
        100 + number,
        "ray::Actor.join",
        f"{STORE if at_store else CREATION} {OWN}",
        locals_=[Local(frame=0, name=n, value=str(v)) for n, v in locals_.items()],
        sockets=[listener] if rank == 0 else [client] if met else [],
    )


def run(stacks: Stacks, *members: Process) -> Snapshot:
    numbers = [m.pid - 100 for m in members]
    driver = process(stacks, 1, "driver", f"{RAY_GET} main@app/main.py:3", kind="driver", refs=[task_id(n) for n in numbers])
    classes = ["Trainer", "Engine", "Engine", "Engine"]
    tables = ray_state(actors=[actor(n, classes[n], 100 + n) for n in numbers], cores=[core(100 + n, running=[n], actor_number=n) for n in numbers])
    return snapshot(stacks.node([driver, *members]), tables)


@pytest.mark.parametrize("at_store", [True, False])
def test_the_rank_with_a_size_of_its_own_is_named(at_store: bool) -> None:
    stacks = Stacks()
    report = diagnose(run(stacks, member(stacks, 0, 0, 4, at_store=at_store), *(member(stacks, n, n, 3) for n in (1, 2))))
    first = report.findings[0]
    assert (report.verdict.state, first.cause, first.certainty, {w.pid for w in first.who}) == (
        State.HANG,
        Cause.INIT_DEADLOCK,
        Certainty.LIKELY,
        {100},
    )
    assert "Trainer says 4 ranks" in first.summary
    assert {v.pid for v in first.victims} >= {101, 102}
    assert "rank 0 of 4, by torch's own variables" in [e.text for e in first.evidence]


@pytest.mark.parametrize(
    "ranks",
    [
        [(0, 4, "weights"), (1, 4, "weights"), (2, 4, "weights")],
        [(0, 4, "weights"), (0, 3, "weights"), (1, 3, "weights")],
        [(0, 3, "weights"), (1, 4, "tools"), (2, 4, "tools")],
        [(0, 2, "weights"), (1, 2, "weights"), (2, 4, "weights")],
        [(1, 4, "weights"), (2, 3, "weights")],
    ],
    ids=["they agree", "two groups", "two names", "one is complete", "the first is not there"],
)
def test_nobody_is_accused_for_sizes_that_fit(ranks: list[tuple[int, int, str]]) -> None:
    stacks = Stacks()
    report = diagnose(run(stacks, *(member(stacks, n, rank, size, name=name) for n, (rank, size, name) in enumerate(ranks))))
    assert not [f.summary for f in report.findings if "do not agree" in f.summary]


def test_groups_of_several_sizes_that_are_made_inside_another_are_usual() -> None:
    stacks = Stacks()
    members = [member(stacks, 0, 0, 4), *(member(stacks, n, n, 3) for n in (1, 2))]
    taken = run(stacks, *members)
    (node,) = taken.nodes
    inside = tuple(
        replace(f, function="new_group", file="torch/distributed/distributed_c10d.py") if f.function == "custom_group" else f for f in node.frames
    )
    report = diagnose(replace(taken, nodes=(replace(node, frames=inside),)))
    assert not [f.summary for f in report.findings if "do not agree" in f.summary]


def test_ranks_that_are_not_connected_to_the_first_ones_store_belong_to_another_group() -> None:
    stacks = Stacks()
    report = diagnose(run(stacks, member(stacks, 0, 0, 4, at_store=True), *(member(stacks, n, n, 3, met=False) for n in (1, 2))))
    assert not [f.summary for f in report.findings if "do not agree" in f.summary]


def test_a_store_that_is_elsewhere_belongs_to_another_group() -> None:
    stacks = Stacks()
    others = [member(stacks, 1, 1, 3, name="weights", met=False), member(stacks, 2, 2, 3, name="tools", met=False)]
    report = diagnose(run(stacks, member(stacks, 0, 0, 4, at_store=True), *others))
    assert not [f.summary for f in report.findings if "do not agree" in f.summary]
