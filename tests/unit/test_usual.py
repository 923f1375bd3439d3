"""What is usual: calls that met a stop, a pause or a stall never raise the bar."""

from __future__ import annotations

import pytest

from ray_rl_debug.ray_state.usual_durations import usual_longest


@pytest.mark.parametrize(
    ("durations", "longest"),
    [
        ([], 0.0),
        ([18.0], 18.0),
        ([0.1, 0.2], 0.2),
        ([0.1, 0.2, 0.15, 16.0], 0.2),  # one stop among healthy calls
        ([0.1] * 6 + [16.0, 17.0], 0.1),  # two of them
        ([0.1, 16.0, 0.1, 16.0, 0.1, 16.0], 16.0),  # two kinds in turns
        ([1.0, 2.0, 3.0, 4.0, 9.0], 9.0),  # it grows
        ([0.001, 0.001, 0.001, 0.001, 0.9], 0.9),  # short ones vary by any factor
    ],
)
def test_the_longest_that_does_not_stand_apart(durations: list[float], longest: float) -> None:
    assert usual_longest(durations) == longest
