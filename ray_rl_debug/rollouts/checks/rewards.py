"""RRD238 rewards that teach nothing

Story
    All rewards are equal, or equal within each group of answers to one prompt: advantages are then 0, and the step changes nothing. Rewards that are
    all 0 are often a reward function that failed, or a rollout whose reward was lost after a time-out.

Evidence
    The rewards' mean and spread; how many groups have equal rewards.

Remedy
    Run the reward function on some answers by hand; choose prompts that are solved sometimes (dynamic filtering).

Not this when
    Only some groups are equal: easy and hard prompts always give some.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, pstdev

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.batches import Batch
from ray_rl_debug.rollouts.checks.limits import Limits
from ray_rl_debug.rollouts.trajectories import rewards_of

ID = "RRD238"
NAME = "rewards that teach nothing"
CAUSE = Cause.BATCH


def check(batch: Batch, limits: Limits) -> Iterator[Found]:
    """Batches whose rewards have no spread, as a whole or in every group."""
    rewards = rewards_of(batch)
    if rewards is None or len(rewards) < 2:
        return
    groups = [g for g in _groups(batch, rewards, limits.group_size) if len(g) > 1]
    equal = sum(max(g) == min(g) for g in groups)
    is_flat = max(rewards) == min(rewards)
    if is_flat or (groups and equal == len(groups)):
        what = f"all {len(rewards)} rewards are {rewards[0]:g}" if is_flat else f"rewards are equal within each of {len(groups)} groups"
        spread = f"mean reward {fmean(rewards):.4g}, spread {pstdev(rewards):.4g}"
        yield Found(
            id=ID,
            name=NAME,
            cause=CAUSE,
            certainty=Certainty.PROVEN,
            summary=f"{what}: group advantages are 0, and this batch teaches nothing",
            evidence=(spread, *((f"{equal} of {len(groups)} groups have equal rewards",) if groups else ())),
            remedy=(
                "run the reward function on some answers by hand; rewards lost after a time-out come as 0",
                "choose prompts that are solved sometimes, or filter groups without spread",
            ),
        )


def _groups(batch: Batch, rewards: Sequence[float], size: int | None) -> list[list[float]]:
    names = batch.others.get("uid")
    if names is not None and len(names) == len(rewards):
        found: dict[str, list[float]] = {}
        for name, reward in zip(names, rewards, strict=True):
            found.setdefault(str(name), []).append(reward)
        return list(found.values())
    return [list(rewards[n : n + size]) for n in range(0, len(rewards), size)] if size else []
