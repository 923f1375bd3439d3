"""Locals of library frames that tell whether a wait is still the same one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.telling_locals import given_limit_s
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.model.snapshot import Frame, Local

JOINS = "_wait_for_tstate_lock@threading.py:1139 join@threading.py:1119 main@app/train.py:54"


@pytest.mark.parametrize(
    ("threads", "timeout", "motion"),
    [(("a1", "a1", "a1"), "None", Motion.FROZEN), (("a1", "b2", "c3"), "None", Motion.MOVING), (("a1", "b2", "c3"), "1.0", Motion.FROZEN)],
    ids=["one thread", "one after the other", "looks at all of them again and again"],
)
def test_who_joins_another_thread_than_before_moves(threads: tuple[str, ...], timeout: str, motion: Motion) -> None:
    stacks = Stacks()
    one = process(stacks, 100, "python train.py", JOINS, kind="named", wchan="futex_do_wait")
    samples = []
    for sample, thread in zip(one.samples, threads, strict=True):
        told = (Local(frame=1, name="self", value=f"<Thread at 0x{thread}>"), Local(frame=1, name="timeout", value=timeout))
        samples.append(replace(sample, threads=tuple(replace(t, locals=told) for t in sample.threads)))
    view = build_view(snapshot(stacks.node([replace(one, samples=tuple(samples))])))
    assert view.seen["node1/100"].motion is motion


@pytest.mark.parametrize(
    ("function", "value", "limit_s"),
    [
        ("EpollSelector.select", "5", 5.0),
        ("SelectSelector.select", "0.25", 0.25),
        ("_PollLikeSelector.select", "500", 0.5),
        ("EpollSelector.select", "None", None),
        ("EpollSelector.select", "-1", None),
        ("EpollSelector.select", "0", None),
    ],
)
def test_the_limit_of_a_selector_is_told_by_its_own_frame(function: str, value: str, limit_s: float | None) -> None:
    told = [Local(frame=1, name="timeout", value="7"), Local(frame=0, name="timeout", value=value)]
    assert given_limit_s([Frame(function=function, file="selectors.py", line=468)], told) == limit_s
