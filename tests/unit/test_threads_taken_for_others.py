"""A thread that py-spy took for another one of the kernel's: what its line does tells more than the call of that other one."""

from __future__ import annotations

import pytest

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.places import place_of
from ray_rl_debug.model.snapshot import Frame, Thread, ThreadSample

IN_FUTEX = Thread(tid=200, comm="pt_thread_pool", state="S", cpu_s=0.0, call="futex", run_slices=11)


def _at(calls: tuple[str, ...] | None, *, wants: str | None = None, waits_for_gil: bool = False) -> Kind:
    frames = (
        Frame(function="evaluate", file="/job/scores.py", line=24, calls=calls, wants=wants),
        Frame(function="_run_function", file="torch/distributed/rpc/internal.py", line=209),
    )
    sample = ThreadSample(stack=0, tid=200, name=None, active=False, waits_for_gil=waits_for_gil)
    return place_of(frames, sample, IN_FUTEX).kind


def test_a_line_that_only_sleeps_is_no_wait_for_a_lock() -> None:
    assert _at(("sleep",)) is Kind.SLEEP


@pytest.mark.parametrize("calls", [(), ("sleep", "acquire"), None])
def test_a_line_that_may_do_something_else_waits_for_a_lock(calls: tuple[str, ...] | None) -> None:
    assert _at(calls) is Kind.LOCK


def test_who_wants_a_lock_or_the_interpreter_waits_for_that() -> None:
    assert _at(("sleep",), wants="table") is Kind.LOCK
    assert _at(("sleep",), waits_for_gil=True) is Kind.LOCK
