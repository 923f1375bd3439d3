"""Would AReaL's staleness control let such a batch through? Its formula, with the numbers of this configuration.

Source: AReaL 1.0.4, ``infra/staleness_manager.py`` (``get_capacity``) and ``infra/workflow_executor.py`` (limits divided by the data parallel size).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ray_rl_debug.doctor import answers
from ray_rl_debug.model.health import Result
from ray_rl_debug.model.trial import Facts, Gate


class Limits(msgspec.Struct, frozen=True):
    """What one engine is left with."""

    batch: int
    concurrent: int
    consumer: int
    admitted: int
    """Rollouts that may be accepted or running together at this version."""


def limits_of(gate: Gate) -> Limits:
    """The limits of one engine: all are divided by the data parallel size, and none goes below 1."""
    share = max(1, gate.data_parallel)
    consumer_all = gate.consumer_batch_size or gate.batch_size
    consumer = max(1, consumer_all // share)
    concurrent = max(1, (gate.max_concurrent or consumer_all) // share)
    return Limits(-(-gate.batch_size // share), concurrent, consumer, (gate.max_offpolicyness + gate.version + 1) * consumer)


def capacity(gate: Gate, *, accepted: int, running: int) -> int:
    """How many rollouts may start now; 0 or less: the executor waits."""
    limits = limits_of(gate)
    return min(limits.concurrent - running, limits.admitted - accepted - running)


def least_offpolicyness(gate: Gate) -> int:
    """The smallest ``max_head_offpolicyness`` with which the batch comes through without an update."""
    limits = limits_of(gate)
    return max(0, -(-limits.batch // limits.consumer) - 1 - gate.version)


def staleness(facts: Facts) -> Iterator[Result]:
    """AReaL's executor starts a rollout only while its capacity is above 0. A debugging or evaluation script raises no version, so accepted rollouts
    use the capacity up for good; ``rollout_batch`` then waits for the rest for ever.

    Evidence: capacity = min(max_concurrent_rollouts - running, (max_head_offpolicyness + version + 1) * consumer_batch_size - accepted - running),
    with the numbers of the configuration, for one engine.

    Remedy: raise max_head_offpolicyness or consumer_batch_size, or ask for smaller batches.

    Not this when: a trainer raises the version after each update: then the gate opens again, by one batch at a time.
    """
    gate = facts.gate
    if gate is None:
        return
    limits = limits_of(gate)
    share = f" per engine ({gate.data_parallel} share the limits)" if gate.data_parallel > 1 else ""
    sum_ = f"({gate.max_offpolicyness} + {gate.version} + 1) * {limits.consumer} = {limits.admitted}"
    numbers = f"{limits.batch} rollouts asked for{share}; {sum_} admitted at version {gate.version}"
    numbers += f", {min(limits.concurrent, limits.admitted)} at once"
    if limits.admitted >= limits.batch:
        yield answers.ok(numbers)
        return
    left = limits.batch - limits.admitted
    closed = f"capacity is then min({limits.concurrent} - 0, {limits.admitted} - {limits.admitted} - 0) = 0"
    yield answers.fail(
        numbers,
        f"at least {limits.batch} admitted",
        f"{limits.admitted} rollouts are accepted, {closed}, and {left} never start: rollout_batch waits for ever unless the version rises",
        f"rollout.max_head_offpolicyness={least_offpolicyness(gate)}",
    )
