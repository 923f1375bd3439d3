"""Processes that are slow and go on: one that reads in pieces, one that pauses between steps, one that naps for longer than a look, one that left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.outlook import TABLE
from ray_rl_debug.analyze.outlook_facts import facts_of
from ray_rl_debug.analyze.places import place_of
from ray_rl_debug.analyze.rank_counters import Joined
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.model.snapshot import Frame, Thread

WRITE, SLEEP = 1, 230
NAPS = "__getitem__@app/data.py:52 fetch@app/data.py:60"


def reason(
    row: str, asked: Sequence[Why], *, line: Mapping[str, Any] | None = None, wakes_in_s: float | None = 0.5, window_s: float = 2.0, **more: Any
) -> str | None:
    """Why a row applies to a child that pauses, came to it more than once, and is waited for in these ways by a process that writes."""
    stacks = Stacks()
    waits = process(stacks, 100, "python train.py", "save@app/train.py:48", kind="named", syscall=WRITE, arg0=5, wchan="anon_pipe_write")
    child = process(stacks, 200, "python work.py", NAPS, kind="child", ppid=100, wchan="hrtimer_nanosleep", syscall=SLEEP)
    thread = replace(child.threads[0], run_slices=11, wakes_in_s=wakes_in_s)
    if more.get("cpu_s"):
        thread = replace(thread, state="R", wchan=None, syscall=None, cpu_s=more["cpu_s"])
    child = replace(child, start_time_s=100.0, window_s=window_s, threads=(thread,), **more)
    node = stacks.node([waits, child])
    frames = tuple(replace(f, calls=("sleep",), **(line or {})) if f.line == 52 else f for f in node.frames)
    view = build_view(snapshot(replace(node, frames=frames)))
    edges = [Edge(source="node1/100", target="node1/200", why=why, evidence="") for why in asked]
    facts = facts_of(view, view.seen["node1/200"], (), Joined(), edges)
    return next(one for one in TABLE if one.name == row).reason(facts)


def test_who_reads_piece_by_piece_does_not_leave_a_pipe_full() -> None:
    assert reason("does not read", [Why.PIPE], wakes_in_s=4000.0, read_bytes=0) is not None
    assert reason("does not read", [Why.PIPE], wakes_in_s=4000.0, read_bytes=81920) is None


def test_who_pauses_or_computes_may_read_after_its_step() -> None:
    assert reason("does not read", [Why.PIPE], read_bytes=0) is None
    assert reason("does not read", [Why.PIPE], wakes_in_s=None, read_bytes=0, cpu_s=1.9) is None


@pytest.mark.parametrize(
    ("asked", "applies"),
    [
        ([Why.CHILD], False),
        ([Why.CHILD, Why.COLLECTIVE], False),
        ([Why.PIPE], False),
        ([Why.AWAITED_CHILD], False),
    ],
    ids=["by its launcher", "by other ranks too", "for what it writes", "for its end"],
)
def test_the_age_of_one_that_pauses_between_steps_tells_only_who_waits_for_its_end(asked: list[Why], applies: bool) -> None:
    assert (reason("a child that does not end", asked) is not None) is applies


@pytest.mark.parametrize(
    ("line", "wakes_in_s", "window_s", "stands"),
    [
        ({"goes_round": False}, 4.0, 20.0, False),
        ({}, 4.0, 20.0, False),
        ({"goes_round": False}, 1000.0, 20.0, True),
        ({"goes_round": True}, 600.0, 20.0, False),
        ({"goes_round": False, "looks": ("exists",)}, 0.5, 20.0, True),
        ({"goes_round": False, "looks": ("exists",)}, 0.5, 2.0, False),
    ],
    ids=["its clock wakes it soon", "its source was not read", "it sleeps for long", "a loop without end", "it looks for something", "a short look"],
)
def test_a_long_look_that_meets_one_napping_tells_nothing(line: dict[str, Any], wakes_in_s: float, window_s: float, stands: bool) -> None:
    assert (reason("stands still", [Why.DATALOADER], line=line, wakes_in_s=wakes_in_s, window_s=window_s) is not None) is stands


@pytest.mark.parametrize(("read_bytes", "stands"), [(262144, False), (None, False), (0, True)], ids=["it reads", "not read", "it reads nothing"])
def test_a_look_that_reads_what_somebody_writes_takes_a_piece_each_time(read_bytes: int | None, stands: bool) -> None:
    said = reason("stands still", [Why.PIPE], line={"goes_round": False, "looks": ("read",)}, wakes_in_s=3.6, window_s=20.0, read_bytes=read_bytes)
    assert (said is not None) is stands


@pytest.mark.parametrize(("call", "left"), [("wait4", False), ("clock_nanosleep", False), ("write", True), ("fsync", True)])
def test_who_writes_does_not_wait_for_a_child_any_more(call: str, left: bool) -> None:
    """The kernel is asked a moment after the stack was read."""
    frames = [Frame(function="Popen._try_wait", file="subprocess.py", line=2004), Frame(function="save", file="app/train.py", line=48)]
    assert place_of(frames, None, Thread(tid=1, comm="python", state="S", call=call, run_slices=6)).was_left is left
