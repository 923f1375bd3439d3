"""What CPython tells of a process beside what our reader saw."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ray_rl_debug.bounded.programs import Finished
from ray_rl_debug.collect.async_tasks.remote_inspection import InspectedTask, Inspection, can_inspect, inspect_remotely, merge
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame

NOBODY: dict[int, int] = {}
LOCK = Awaited(kind="lock", detail="Lock locked", address=70)


def frame(function: str, line: int) -> AwaitFrame:
    return AwaitFrame(function=function, file="/job/agent.py", line=line)


def own(*frames: AwaitFrame, stable: bool | None = None) -> AsyncTask:
    return AsyncTask(address=1, name="Task-1", chain=frames, awaited=LOCK, loop=9, tid=4, stable=stable)


def told(*frames: tuple[str, int]) -> Inspection:
    return Inspection(tasks=(InspectedTask(1, "Task-1", 4, tuple((f, "/job/agent.py", line) for f, line in reversed(frames))),))


def never() -> tuple[AsyncTask, ...]:
    raise AssertionError("nothing differs")


def test_chains_agree() -> None:
    seen = own(frame("episode", 3), frame("call", 8))
    assert merge((seen,), told(("episode", 3), ("call", 8)), never, NOBODY) == (seen,)


def test_cpython_stops_at_an_awaitable_in_c() -> None:
    seen = own(frame("episode", 3), frame("call", 8))
    assert merge((seen,), told(("episode", 3)), never, NOBODY) == (seen,)


def test_a_name_that_cpython_cannot_read() -> None:
    seen = own(frame("méthode", 3))
    assert merge((seen,), told(("\0" * 7, 3)), never, NOBODY) == (seen,)
    assert merge(None, told(("\0" * 7, 3)), never, NOBODY)[0].chain == (frame("?", 3),)


def test_a_task_that_moved_meanwhile() -> None:
    now = own(frame("episode", 5))
    (task,) = merge((own(frame("episode", 3)),), told(("episode", 4)), lambda: (now,), NOBODY)
    assert (task.chain, task.stable) == (now.chain, False)


def test_cpythons_chain_holds_for_a_task_that_stands_still() -> None:
    seen = own(frame("episode", 3))
    (task,) = merge((seen,), told(("episode", 4)), lambda: (seen,), NOBODY)
    assert (task.chain, task.awaited, task.stable) == ((frame("episode", 4),), LOCK, None)


def test_tasks_that_only_one_of_them_saw() -> None:
    other = Inspection(tasks=(InspectedTask(2, "b", 7, (("sleep", "/lib/python3.14/asyncio/tasks.py", 700), ("nap", "/job/agent.py", 2))),))
    first, second = merge((own(frame("episode", 3)),), other, never, {7: 4007})
    assert (first.address, second.address, second.tid) == (1, 2, 4007)
    assert second.awaited == Awaited(kind="sleep")
    assert [f.function for f in second.chain] == ["nap", "sleep"]


def test_who_awaits_whom_and_who_runs() -> None:
    tasks = tuple(InspectedTask(n, str(n), 0, (("f", "/job/agent.py", n),), by) for n, by in ((1, ()), (2, (1,)), (3, (1, 2)), (4, ())))
    found = {t.address: t.awaited for t in merge(None, Inspection(tasks, running=(4,)), never, NOBODY)}
    assert found[1] == Awaited(kind="gather", tasks=(2, 3))
    assert found[2] == Awaited(kind="task", tasks=(3,))
    assert found[3] == Awaited(kind="future")
    assert found[4] == Awaited(kind="running")


@pytest.mark.parametrize(
    ("version", "own", "expected"),
    [((3, 14), (3, 14), True), ((3, 13), (3, 14), False), ((3, 13), (3, 13), False), (None, (3, 14), False), ((3, 15), (3, 15), True)],
)
def test_only_its_own_version(version: tuple[int, int] | None, own: tuple[int, int], expected: bool) -> None:
    assert can_inspect(lambda: version, own) is expected


def answers(output: bytes, code: int | None = 0, problem: Exception | None = None) -> Any:
    def run(*_: Any, **__: Any) -> Finished:
        if problem is not None:
            raise problem
        return Finished(code=code, out=output, err=b"")

    return run


@pytest.mark.parametrize(
    "run",
    [
        answers(b"", code=1),
        answers(b"", code=-11),
        answers(b"[[[1"),
        answers(b'[[["x", 1, 2, 3]], []]'),
        answers(b"", code=None),
        answers(b"", problem=OSError("no more processes")),
    ],
)
def test_it_refuses_crashes_or_hangs(run: Any) -> None:
    assert inspect_remotely(1, deadline_s=1, max_tasks=10, run=run) is None


def test_answer() -> None:
    output = json.dumps([[[1, "a", 2, [["f", "x.py", None]], [5]]], [1]]).encode()
    assert inspect_remotely(1, deadline_s=1, max_tasks=10, run=answers(output)) == Inspection(
        tasks=(InspectedTask(1, "a", 2, (("f", "x.py", None),), (5,)),), running=(1,)
    )
