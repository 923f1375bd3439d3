"""How the lab of kinds judges a report."""

from __future__ import annotations

from typing import Any

import pytest
from kinds.truth import PROGRAMS, Program

HANG = Program("name", "kind", who=("rank0", "label:the network"), causes=("straggler",), beside=("rank1",))
MARKS = {"main": 1, "rank0": 10, "rank1": 11, "rank2": 12}


def report(*who: tuple[int | None, str], state: str = "hang", cause: str = "straggler", certainty: str = "likely") -> dict[str, Any]:
    finding = {"cause": cause, "certainty": certainty, "who": [{"pid": pid, "label": label} for pid, label in who]}
    return {"verdict": {"state": state}, "findings": [finding] if who else []}


@pytest.mark.parametrize(
    "told",
    [
        report((10, "a/0")),
        report((10, "a/0"), (11, "a/1")),
        report((10, "a/0"), (99, "a child of it")),
        report((None, "the network of a")),
    ],
)
def test_one_of_the_meant_and_no_other_is_right(told: dict[str, Any]) -> None:
    assert HANG.is_told(told, MARKS, healthy=False)


@pytest.mark.parametrize(
    "told",
    [
        report((10, "a/0"), (12, "a/2")),
        report((11, "a/1")),
        report((10, "a/0"), state="unknown"),
        report((10, "a/0"), cause="blocked-io"),
        report(),
    ],
)
def test_a_victim_another_cause_and_another_state_are_wrong(told: dict[str, Any]) -> None:
    assert not HANG.is_told(told, MARKS, healthy=False)


def test_of_two_roles_of_one_process_the_meant_one_counts() -> None:
    assert HANG.is_told(report((10, "a/0")), {"rank0": 10, "first": 10}, healthy=False)


def test_in_a_healthy_twin_nobody_is_accused() -> None:
    assert HANG.is_told(report(state="healthy"), MARKS, healthy=True)
    assert HANG.is_told(report((12, "a/2"), state="slow", certainty="possible"), MARKS, healthy=True)
    assert not HANG.is_told(report((12, "a/2"), state="slow"), MARKS, healthy=True)
    assert not HANG.is_told(report(state="unknown"), MARKS, healthy=True)


def test_every_kind_has_three_programs() -> None:
    kinds = [program.kind for program in PROGRAMS.values()]
    counts = {kind: kinds.count(kind) for kind in kinds if kind != "mixed"}
    assert min(counts.values()) >= 3, counts
