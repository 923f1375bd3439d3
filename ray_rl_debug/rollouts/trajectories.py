"""The prompts and answers in a trainer's batch: which tokens were read, which were made, with which log-probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ray_rl_debug.rollouts.answers import Answer
from ray_rl_debug.rollouts.batches import Batch


class Trajectory(msgspec.Struct, frozen=True):
    """One row of a batch without its padding."""

    prompt: tuple[int, ...]
    answer: tuple[int, ...]
    made: tuple[bool, ...]
    """Which tokens of the answer the model made; others came from tools or later turns."""
    start: int
    """Column of the answer's first token in the answer's own tensors."""


def trajectories(batch: Batch) -> Iterator[Trajectory]:
    """All rows; nothing for a batch without tokens."""
    fields = batch.fields
    if "responses" in fields:
        yield from _of_verl(batch)
    elif "input_ids" in fields and "loss_mask" in fields:
        attention = fields.get("attention_mask")
        for n, ids in enumerate(fields["input_ids"].rows):
            seen = _flags(attention.rows[n] if attention is not None and n < len(attention.rows) else None, len(ids))
            mask = _flags(fields["loss_mask"].rows[n] if n < len(fields["loss_mask"].rows) else None, len(ids))
            first = next((at for at, m in enumerate(mask) if m), len(ids))
            prompt = tuple(int(t) for t, s in zip(ids[:first], seen, strict=False) if s)
            rest = [(int(t), m) for t, m, s in zip(ids[first:], mask[first:], seen[first:], strict=False) if s]
            yield Trajectory(prompt, tuple(t for t, _ in rest), tuple(m for _, m in rest), first)


def _of_verl(batch: Batch) -> Iterator[Trajectory]:
    fields = batch.fields
    responses = fields["responses"].rows
    for n, row in enumerate(responses):
        prompt_row: Sequence[float] = fields["prompts"].rows[n] if "prompts" in fields and n < len(fields["prompts"].rows) else ()
        whole = fields["attention_mask"].rows[n] if "attention_mask" in fields and n < len(fields["attention_mask"].rows) else None
        if whole is not None and len(whole) == len(prompt_row) + len(row):
            seen_prompt, seen = _flags(whole[: len(prompt_row)], len(prompt_row)), _flags(whole[len(prompt_row) :], len(row))
        else:
            seen_prompt, seen = [True] * len(prompt_row), [True] * len(row)
        mask = fields["response_mask"].rows[n] if "response_mask" in fields and n < len(fields["response_mask"].rows) else None
        made = _flags(mask, len(row))
        kept = [(int(t), m) for t, m, s in zip(row, made, seen, strict=False) if s]
        prompt = tuple(int(t) for t, s in zip(prompt_row, seen_prompt, strict=False) if s)
        yield Trajectory(prompt, tuple(t for t, _ in kept), tuple(m for _, m in kept), 0)


def _flags(row: Sequence[float] | None, length: int) -> list[bool]:
    return [True] * length if row is None or len(row) != length else [bool(v) for v in row]


def answers_of(batch: Batch) -> tuple[Answer, ...]:
    """The trajectories as answers of the engine; log-probabilities only of tokens that the model made."""
    source = batch.fields.get("rollout_log_probs") or batch.fields.get("logprobs")
    rewards = rewards_of(batch)
    found = []
    for n, one in enumerate(trajectories(batch)):
        logprobs = None
        if source is not None and n < len(source.rows):
            row = source.rows[n][one.start : one.start + len(one.answer)]
            logprobs = tuple(float(v) if m else None for v, m in zip(row, one.made, strict=False))
        found.append(
            Answer(
                key=str(n), prompt_ids=one.prompt, ids=one.answer, logprobs=logprobs, count=len(one.answer), reward=rewards[n] if rewards else None
            )
        )
    return tuple(found)


def rewards_of(batch: Batch) -> list[float] | None:
    """One reward per trajectory: the sum of its scores per token, or the one number that it has; None: the batch has none."""
    for name in ("token_level_scores", "token_level_rewards", "rm_scores", "rewards", "task_reward"):
        field = batch.fields.get(name)
        if field is not None:
            return [sum(row) for row in field.rows]
    return None
