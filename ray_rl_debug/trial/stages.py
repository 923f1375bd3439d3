"""The steps of a trial, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.model.trial import Plan, Stage


def stages_of(plan: Plan) -> Iterator[tuple[Stage, int, int]]:
    """Each stage with its groups and their size: one episode, one group, growing concurrency, then the whole batch several times."""
    whole = plan.batch_size * plan.group_size
    levels = plan.levels or tuple(2**k for k in range(1, 12) if plan.group_size < 2**k < whole)
    steps = [("alone", 1, 1, 1), ("group", plan.group_size, 1, plan.group_size)]
    for level in sorted(set(levels)):
        steps.append(("level", level, max(1, -(-2 * level // plan.group_size)), plan.group_size))
    steps += [("batch", whole, plan.batch_size, plan.group_size)] * plan.rounds
    if plan.group_size == 1:
        del steps[1]
    for number, (name, concurrency, groups, size) in enumerate(steps):
        yield Stage(number=number, name=name, concurrency=concurrency, episodes=groups * size), groups, size
