"""Do the rewards teach anything?"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor import answers
from ray_rl_debug.model.health import Result
from ray_rl_debug.model.trial import Facts
from ray_rl_debug.trial.judge.figures import rewards

MANY = 0.5
FEW = 8
"""Groups below this say nothing of a distribution."""


def distribution(facts: Facts) -> Iterator[Result]:
    """Group-relative methods (GRPO and its kin) take a reward minus the mean of its group: a group of equal rewards has no gradient.

    Evidence: mean, spread and range of all rewards; how many groups have equal rewards; the spread within a group.

    Remedy: harder or easier tasks (dynamic filtering), a finer reward, sampling with a temperature above 0.

    Not this when: the answers are the stand-in's, which are all alike: then rewards say nothing.
    """
    found = rewards([e for e in facts.episodes if e.error is None])
    if found is None:
        if facts.contract is not None and any(e.took_s is not None and e.error is None for e in facts.episodes):
            yield answers.unknown("no episode returned a reward itself")
        return
    text = f"{found.count} rewards from {found.least:g} to {found.most:g}, mean {found.mean:.3g}, standard deviation {found.deviation:.3g}"
    if found.groups:
        text += f"; {found.equal_groups} of {found.groups} groups have equal rewards, deviation within a group {found.within:.3g}"
    if facts.is_stand_in:
        yield answers.unknown(f"{text}; the answers are the stand-in's, so this says nothing: give --endpoint")
    elif found.groups >= FEW and found.equal_groups > MANY * found.groups:
        then = "such groups have no advantage: their part of the batch teaches nothing"
        yield answers.warn(text, "rewards that differ within most groups", then, "filter tasks by difficulty, or sample at temperature 1")
    else:
        yield answers.ok(text)
