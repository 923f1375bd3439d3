"""Drivers that look again and again while all actors are idle, from a recorded run with one fact changed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from scenes import MAIN, Stacks, actor, core, process, ray_state, snapshot

from ray_rl_debug.analyze.waits_poll import ASKS
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import State
from ray_rl_debug.model.snapshot import Snapshot

RECORDED = Path(__file__).parents[1] / "kinds" / "recorded" / "groups_without_spread-hang.json.gz"


def recorded(earlier_s: float) -> Snapshot:
    """With all finished calls so much earlier."""
    taken = load((RECORDED,)).snapshot
    assert taken is not None and taken.ray is not None
    history = tuple(msgspec.structs.replace(h, last_end_time_s=(h.last_end_time_s or 0.0) - earlier_s) for h in taken.ray.history)
    return msgspec.structs.replace(taken, ray=msgspec.structs.replace(taken.ray, history=history))


@pytest.mark.parametrize(
    ("earlier_s", "state", "said"),
    [(0.0, State.SLOW, "if it waits for work, nobody does any"), (60.0, State.UNKNOWN, "Nobody was seen who would deliver what it looks for")],
    ids=["a call has just ended", "none has for a minute"],
)
def test_one_that_looks_in_a_step_does_not_wait_for_its_user(earlier_s: float, state: State, said: str) -> None:
    verdict = diagnose(recorded(earlier_s)).verdict
    assert verdict.state is state
    assert "driver" in verdict.summary and said in verdict.summary


def test_who_rests_in_the_outermost_function_waits_for_its_user() -> None:
    taken = recorded(0.0)
    (node,) = taken.nodes
    inner = {i for i, f in enumerate(node.frames) if f.function.endswith("Batch.receive")}
    assert inner
    stacks = tuple(tuple(i for i in stack if i not in inner) for stack in node.stacks)
    changed = msgspec.structs.replace(taken, nodes=(msgspec.structs.replace(node, stacks=stacks),))
    assert diagnose(changed).verdict.state is State.HEALTHY


@pytest.mark.parametrize(("gives_up", "state"), [(True, State.HEALTHY), (False, State.SLOW), (None, State.SLOW)])
def test_one_whose_loop_gives_up_after_a_time_is_at_rest(gives_up: bool | None, state: State) -> None:
    taken = recorded(0.0)
    (node,) = taken.nodes
    frames = tuple(msgspec.structs.replace(f, gives_up=gives_up) if f.function.endswith("Batch.receive") else f for f in node.frames)
    verdict = diagnose(msgspec.structs.replace(taken, nodes=(msgspec.structs.replace(node, frames=frames),))).verdict
    assert verdict.state is state
    assert ("in a loop that ends by itself" in verdict.summary) is bool(gives_up)


@pytest.mark.parametrize(
    ("stack", "looks", "state"),
    [
        ("sample@app/buffer.py:21 fit@app/train.py:9", ("get", ASKS), State.UNKNOWN),
        ("sample@app/buffer.py:21", ("get", ASKS), State.HEALTHY),
        ("sample@app/buffer.py:21 fit@app/train.py:9", None, State.HEALTHY),
    ],
    ids=["in a step", "in the outermost function", "at nobody"],
)
def test_one_that_asks_an_actor_in_a_step_while_all_are_idle(stack: str, looks: tuple[str, ...] | None, state: State) -> None:
    """A rollout has lost its sample: what the queue answers to the driver never changes."""
    stacks = Stacks()
    driver = process(stacks, 1, "python train.py", stack, kind="driver", wchan="hrtimer_nanosleep", syscall=230)
    queue, actor_idle = (process(stacks, pid, title, MAIN) for pid, title in ((100, "ray::Queue"), (101, "ray::Rollout")))
    actors, cores = [actor(0, "Queue", 100), actor(1, "Rollout", 101)], [core(100, actor_number=0, done=2), core(101, actor_number=1), core(1)]
    node = stacks.node([driver, queue, actor_idle])
    frames = tuple(msgspec.structs.replace(f, looks=looks, calls=("sleep",)) if f.function == "sample" else f for f in node.frames)
    verdict = diagnose(snapshot(msgspec.structs.replace(node, frames=frames), ray_state(actors=actors, cores=cores))).verdict
    assert verdict.state is state, verdict.summary
    assert ("Nobody was seen who would deliver" in verdict.summary) is (state is State.UNKNOWN)
