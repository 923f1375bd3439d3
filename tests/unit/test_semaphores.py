"""How long the search for those who hold semaphores may last."""

from __future__ import annotations

from ray_rl_debug.bounded.own_time import own_time


def clocks(*rows: tuple[float, float]):
    """A clock made from what was used of the processor and what passed, one row a reading."""
    used, passed = iter([u for u, _ in rows]), iter([p for _, p in rows])
    return own_time(lambda: next(used), lambda: next(passed))


def test_on_a_full_machine_only_what_was_searched_counts() -> None:
    clock = clocks((5.0, 100.0), (5.0, 100.0), (5.05, 102.0))
    assert clock() == 0.0
    assert round(clock(), 6) == 0.4


def test_on_an_idle_machine_it_is_time_that_passes() -> None:
    clock = clocks((5.0, 100.0), (6.0, 101.0))
    assert clock() == 1.0


def test_who_gets_no_processor_at_all_comes_to_an_end() -> None:
    clock = clocks((5.0, 100.0), (5.0, 110.0))
    assert clock() == 2.0
