"""RRD233 NaN or infinite values

Story
    A field holds values that are no numbers. One of them makes the loss NaN, and after the next step all weights.

Evidence
    The field, how many values, and the first trajectory and place.

Remedy
    The first field in the order log-probabilities, rewards, advantages is the source: NaN log-probabilities come from the engine or its weights, NaN
    rewards from the reward function, NaN advantages from groups without variance and no epsilon.

Not this when
    The values lie outside of all masks and the trainer multiplies by no mask: NaN times 0 is NaN, so even those are told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.batches import Batch
from ray_rl_debug.rollouts.checks.limits import Limits

ID = "RRD233"
NAME = "NaN or infinite values"
CAUSE = Cause.BATCH


def check(batch: Batch, limits: Limits) -> Iterator[Found]:
    """Fields with values that are no finite numbers."""
    told = []
    for name, field in batch.fields.items():
        wrong = [(n, at) for n, row in enumerate(field.rows) for at, v in enumerate(row) if not math.isfinite(v)]
        if wrong:
            n, at = wrong[0]
            told.append(f"{name}: {len(wrong)} of its values, the first is {field.rows[n][at]} in trajectory {n}, place {at}")
    if told:
        yield Found(
            id=ID,
            name=NAME,
            cause=CAUSE,
            certainty=Certainty.PROVEN,
            summary=f"the batch holds values that are no numbers: {told[0]}",
            evidence=tuple(told),
            remedy=(
                "mend the first source: log-probabilities come from the engine, rewards from the reward function, advantages from the trainer",
                "Agent-Lightning and verl: try algorithm.use_kl_in_reward=False to see whether the KL term overflows",
            ),
        )
