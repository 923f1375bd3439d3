"""RRD237 tokens, padding or ends are wrong

Story
    Token ids that are no whole numbers, or that the model does not have, crash an embedding on a GPU without a useful message. Padding inside an
    answer is trained on. Many answers without an end token were cut off (AReaL's guide: above 5 % raise max_new_tokens).

Evidence
    The first such token with its place; the share of answers without an end.

Remedy
    Use one tokenizer for rollout and training; put pad and end tokens into stop_token_ids; allow longer answers.

Not this when
    The pad token is also the end token: then one at the end of an answer is its end.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.batches import Batch
from ray_rl_debug.rollouts.checks.limits import Limits
from ray_rl_debug.rollouts.trajectories import Trajectory, trajectories

ID = "RRD237"
NAME = "tokens, padding or ends are wrong"
CAUSE = Cause.BATCH


def check(batch: Batch, limits: Limits) -> Iterator[Found]:
    """Tokens outside of the vocabulary, padding inside of answers, answers after their end or without one."""
    rows = list(trajectories(batch))
    told = [*_types(batch), *_strange(batch, limits), *_apart(batch), *_padding(rows, limits), *_ends(rows, limits)]
    if told:
        yield Found(
            id=ID,
            name=NAME,
            cause=CAUSE,
            certainty=Certainty.PROVEN,
            summary=f"tokens of the batch are wrong: {told[0]}",
            evidence=tuple(told),
            remedy=(
                "use the same tokenizer for rollout and training: rayrl-debug rollout compare tells where they differ",
                "stop_token_ids must hold the pad and the end token (AReaL: gconfig.stop_token_ids); raise max_new_tokens if answers are cut off",
            ),
        )


IDS = ("input_ids", "prompts", "responses")


def _types(batch: Batch) -> Iterator[str]:
    for name in IDS:
        field = batch.fields.get(name)
        if field is not None and "float" in field.dtype:
            yield f"{name} holds {field.dtype}: token ids are whole numbers, and an embedding refuses others"


def _apart(batch: Batch) -> Iterator[str]:
    """verl's input_ids are its prompts and responses, one behind the other."""
    whole, prompts, responses = (batch.fields.get(name) for name in IDS)
    if whole is None or prompts is None or responses is None:
        return
    for n, (row, prompt, response) in enumerate(zip(whole.rows, prompts.rows, responses.rows, strict=False)):
        joined = [*prompt, *response]
        if len(joined) == len(row) and (at := next((i for i, (a, b) in enumerate(zip(row, joined, strict=True)) if a != b), None)) is not None:
            part = f"{int(joined[at])} in prompts and responses"
            yield f"input_ids is not what prompts and responses hold: trajectory {n}, place {at} has {int(row[at])}, but {part}"
            return


def _strange(batch: Batch, limits: Limits) -> Iterator[str]:
    for name in IDS:
        field = batch.fields.get(name)
        top = limits.vocabulary
        wrong = [(n, at, v) for n, row in enumerate(field.rows if field else ()) for at, v in enumerate(row) if v < 0 or (top and v >= top)]
        if wrong:
            n, at, value = wrong[0]
            limit = f"the vocabulary has {top}" if top and value >= top else "token ids are not negative"
            yield f"{name}: {len(wrong)} tokens do not exist, the first is {int(value)} in trajectory {n}, place {at}; {limit}"
            return


def _padding(rows: list[Trajectory], limits: Limits) -> Iterator[str]:
    if limits.pad is None or (limits.ends and limits.pad in limits.ends):
        return
    wrong = [(n, one.answer.index(limits.pad)) for n, one in enumerate(rows) if limits.pad in one.answer]
    if wrong:
        yield f"the pad token {limits.pad} stands inside {len(wrong)} answers, first in trajectory {wrong[0][0]}, token {wrong[0][1] + 1}"


def _ends(rows: list[Trajectory], limits: Limits) -> Iterator[str]:
    answers = [(n, one) for n, one in enumerate(rows) if one.answer]
    if not limits.ends or not answers:
        return
    # Only answers in one piece: in a conversation, the model's earlier turns end too.
    whole = [(n, one) for n, one in answers if all(one.made)]
    past = [(n, at) for n, one in whole for at, t in enumerate(one.answer[:-1]) if t in limits.ends]
    if past:
        yield f"{len({n for n, _ in past})} answers go on after an end token, first in trajectory {past[0][0]}, token {past[0][1] + 1}"
    cut = [n for n, one in answers if one.answer[-1] not in limits.ends]
    share = len(cut) / len(answers)
    if share > limits.no_end:
        yield f"{share:.0%} of {len(answers)} answers have no end token (more than {limits.no_end:.0%}): they were cut off, or end at another token"
