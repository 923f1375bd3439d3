"""Workers of one pool that stand at one line are one finding; whatever differs in more than the process is told apart."""

from __future__ import annotations

import msgspec
import pytest

from ray_rl_debug.diagnosis.alike import fold_alike
from ray_rl_debug.model.report import Cause, Certainty, Finding, Who

CALLER = Who(label="trainer", node="node1", pid=10)


def found(pid: int, *, label: str = "grade.py", node: str = "node1") -> Finding:
    return Finding(
        id="RRD502",
        name="blocked in I/O",
        cause=Cause.BLOCKED_IO,
        certainty=Certainty.LIKELY,
        summary=f"{label} ({node} pid {pid}) waits in a file call in grade (grade.py:26)",
        root=True,
        who=(Who(label=f"{label} (pid {pid})", node=node, pid=pid),),
        victims=(CALLER,),
    )


def test_those_that_say_the_same_are_one() -> None:
    (one,) = fold_alike([found(20 + n, node=f"node{n % 2}") for n in range(6)])
    assert [w.pid for w in one.who] == [20, 21, 22, 23, 24, 25]
    assert one.summary.startswith("grade.py (node0 pid 20) waits in a file call")
    assert one.summary.endswith("; the same holds for grade.py (pid 21), grade.py (pid 22), grade.py (pid 23) and 2 more")


def test_two_are_both_named() -> None:
    (one,) = fold_alike([found(20), found(21)])
    assert one.summary.endswith("; the same holds for grade.py (pid 21)")


def test_one_alone_stays_as_it_is() -> None:
    assert fold_alike([found(20)]) == (found(20),)


@pytest.mark.parametrize(
    "changed",
    [
        {"certainty": Certainty.POSSIBLE},
        {"victims": ()},
        {"phase": "reward"},
        {"root": False},
        {"summary": "grade.py (node1 pid 21) waits in a file call in grade (grade.py:99)"},
        {"who": ()},
        {"who": (*found(21).who, CALLER)},
    ],
    ids=lambda c: next(iter(c)),
)
def test_what_differs_in_more_is_told_apart(changed: dict[str, object]) -> None:
    given = [found(20), msgspec.structs.replace(found(21), **changed)]
    assert fold_alike(given) == tuple(given)


def test_they_keep_the_place_of_the_first() -> None:
    other = msgspec.structs.replace(found(30), id="RRD501")
    assert [f.id for f in fold_alike([found(20), other, found(21)])] == ["RRD502", "RRD501"]
