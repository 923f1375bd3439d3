"""Who made a call, by the id of the task in which it was made; and whom a wait for a further call names then."""

from __future__ import annotations

import pytest

from ray_rl_debug.ray_state.callers import callers_of

DRIVER = "f" * 40 + "01000000"
ACTOR = "17c9791a65160dc2241b057e01000000"
IN_ACTOR = "e0dc174c83599034" + ACTOR
OTHER_TASK = "d9ef45ccd0112572" + "f" * 24 + "01000000"
TASK = "c8ef45ccd0112571" + "f" * 24 + "01000000"


@pytest.mark.parametrize(
    ("parents", "callers"),
    [
        ([DRIVER], ("driver",)),
        ([IN_ACTOR, DRIVER], (ACTOR, "driver")),
        ([IN_ACTOR, TASK], (ACTOR, "task:evaluate")),
        ([TASK, OTHER_TASK], None),
        (["f" * 48], None),
        ([""], None),
        ([], None),
        ([f"{n:016x}{n:024x}01000000" for n in range(17)], None),
    ],
    ids=[
        "the driver",
        "an actor and the driver",
        "a plain task by its name",
        "a plain task without a name",
        "no task",
        "not told",
        "no call",
        "too many",
    ],
)
def test_the_callers_of_one_name(parents: list[str], callers: tuple[str, ...] | None) -> None:
    assert callers_of(parents, {TASK: "evaluate", DRIVER: ""}) == callers
