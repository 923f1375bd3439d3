"""RRD231 the batch lacks fields

Story
    The trainer ends with KeyError: 'responses' (or another name): whoever made the batch gave back one without the model's answers. In
    Agent-Lightning the daemon found no traced LLM call; in verl a rollout worker failed; in AReaL the workflow returned something else than tensors.

Evidence
    The fields that are there, and those that the trainer needs.

Remedy
    Look at the rollout side first: is the daemon alive, did the LLM calls succeed and get traced, does the workflow return all fields?

Not this when
    A later phase adds the field: advantages and returns are computed by the trainer.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.batches import Batch
from ray_rl_debug.rollouts.checks.limits import Limits

ID = "RRD231"
NAME = "the batch lacks fields"
CAUSE = Cause.BATCH
NEEDED = {
    "verl": (("prompts",), ("responses",), ("input_ids",), ("attention_mask",), ("token_level_scores", "rm_scores", "token_level_rewards")),
    "AReaL": (("input_ids",), ("attention_mask",), ("loss_mask",), ("logprobs",), ("versions",), ("rewards",)),
    "unknown": (("input_ids",), ("attention_mask",)),
}
"""What a trainer reads; one of several names is enough."""


def check(batch: Batch, limits: Limits) -> Iterator[Found]:
    """Fields that a trainer of this kind reads and that are not there."""
    lacking = [names for names in NEEDED[batch.kind] if not set(names) & set(batch.fields)]
    if not lacking:
        return
    first = lacking[0][0]
    if batch.kind == "verl" and "responses" not in batch.fields:
        first = "responses"
    here = ", ".join(sorted(batch.fields)) or "no tensors at all"
    yield Found(
        id=ID,
        name=NAME,
        cause=CAUSE,
        certainty=Certainty.PROVEN,
        summary=f"the batch has no {' and no '.join('/'.join(n) for n in lacking)}: a trainer of {batch.kind} ends with KeyError: {first!r}",
        evidence=(f"fields of the batch: {here}", *batch.notes),
        remedy=(
            "the rollout side made this batch: look for failed or untraced LLM calls there (Agent-Lightning: 'Length of triplets is 0', HTTP 400)",
            "is the daemon, agent loop or workflow alive: rayrl-debug snapshot",
        ),
    )
