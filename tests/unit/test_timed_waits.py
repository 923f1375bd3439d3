"""Waits with a time limit, by the line of Python's own code in which they stand."""

from __future__ import annotations

import pytest

from ray_rl_debug.analyze.timed_waits import wakes_by_itself
from ray_rl_debug.model.snapshot import Frame


@pytest.mark.parametrize(
    ("python", "line", "wanted"),
    [
        ("3.11.2", 324, True),  # Debian 12
        ("3.11.7", 331, True),
        ("3.11", 320, False),  # the line without a limit
        ("3.11", 327, False),
        ("3.12", 359, True),
        ("3.12", None, False),
        ("3.99", 359, False),
        (None, 331, False),
    ],
)
def test_only_the_line_of_a_known_version_tells_a_limit(python: str | None, line: int | None, wanted: bool) -> None:
    frame = Frame(function="Condition.wait", file="threading.py", line=line)
    assert wakes_by_itself(python, [frame]) is wanted


def test_the_same_line_elsewhere_tells_nothing() -> None:
    assert not wakes_by_itself("3.11", [Frame(function="wait", file="app/wait.py", line=331)])
    assert not wakes_by_itself("3.11", [Frame(function="Condition.notify", file="threading.py", line=331)])
    assert not wakes_by_itself("3.11", [])
