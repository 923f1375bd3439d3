"""A trial → what differs, why, and how far."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import msgspec

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.alignment import agreement, before, first_difference, spell
from ray_rl_debug.rollouts.answers import SCHEMA, Answer, Found, Missing, Pair, State, Trial
from ray_rl_debug.rollouts.differences import Distance
from ray_rl_debug.rollouts.rules import RULES, choice
from ray_rl_debug.rollouts.update import Arrival, Move, measure
from ray_rl_debug.rollouts.view import MIN_TOKENS, Size, View, build


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    state: State
    summary: str
    certainty: Certainty


class Parting(msgspec.Struct, frozen=True, kw_only=True):
    """Where the answers of the two sides to one prompt part."""

    key: str
    sample: int
    at: int
    """Tokens in common before it."""
    engine: str
    reference: str
    context: str


class Ends(msgspec.Struct, frozen=True, kw_only=True):
    """Lengths and reasons of ending of one side."""

    answers: int
    tokens_mean: float | None
    finish: dict[str, int]
    reward_mean: float | None
    seconds_mean: float | None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The whole result; ``--json`` prints it."""

    schema: str = SCHEMA
    verdict: Verdict
    findings: tuple[Found, ...]
    engine: str
    reference: str
    answers: int
    identical: int | None
    """Answers with the same tokens (or text) on both sides; None: sampled, or the reference did not answer."""
    agreement: float | None
    """Share of places with the same token."""
    best: float | None
    """Share of the engine's greedy tokens that are the reference's best after the same tokens."""
    ties: int
    """Of the others: tokens as good as the best within the numerical difference."""
    distance: Distance | None
    size: Size
    noise: float | None
    likeness: float | None
    partings: tuple[Parting, ...]
    engine_ends: Ends
    reference_ends: Ends
    rewards_differ: int | None
    """Pairs with different rewards on the two sides."""
    update: Move | None = None
    missing: tuple[Missing, ...] = ()


def compare(trial: Trial, missing: Sequence[Missing] = ()) -> Comparison:
    """What the two sides of `trial` differ in, and why."""
    view = build(trial)
    findings = tuple(found for rule in RULES for found in rule.detect(view))
    both = [p for p in trial.pairs if p.reference is not None and p.reference.error is None and p.engine.error is None]
    # Two samples differ by chance: only best tokens, and recordings of unknown origin, are laid beside each other.
    beside = both if not trial.temperature else []
    told = [a for p in beside if p.reference and (a := agreement(*_rows(p.engine, p.reference))) is not None]
    move = measure(view)
    gaps = (*missing, *_unanswered(trial))
    return Comparison(
        verdict=_verdict(view, findings, both, move),
        findings=findings,
        engine=trial.engine_name,
        reference=trial.reference_name,
        answers=sum(p.engine.error is None for p in trial.pairs),
        identical=sum(_rows(p.engine, p.reference)[0] == _rows(p.engine, p.reference)[1] for p in beside if p.reference) if beside else None,
        agreement=fmean(told) if told else None,
        best=_best(trial),
        ties=choice.ties(view),
        distance=view.distance,
        size=view.size,
        noise=view.noise,
        likeness=view.likeness,
        partings=tuple(p for pair in beside if (p := _parting(pair, trial)) is not None),
        engine_ends=_ends([p.engine for p in trial.pairs]),
        reference_ends=_ends([p.reference for p in trial.pairs if p.reference]),
        rewards_differ=_rewards_differ(both),
        update=move,
        missing=gaps,
    )


def _rows(ours: Answer, theirs: Answer) -> tuple[Sequence[object], Sequence[object]]:
    """The two answers as tokens; as text of tokens, or as characters, where one side tells no ids."""
    for a, b in ((ours.ids, theirs.ids), (ours.pieces, theirs.pieces)):
        if a is not None and b is not None:
            return a, b
    return ours.text or "", theirs.text or ""


def _best(trial: Trial) -> float | None:
    if trial.temperature != 0:
        return None
    hits = [
        a == b
        for p in trial.pairs
        if p.score is not None and p.score.best_ids is not None and p.engine.ids is not None
        for a, b in zip(p.engine.ids, p.score.best_ids, strict=False)
    ]
    return sum(hits) / len(hits) if hits else None


def _parting(pair: Pair, trial: Trial) -> Parting | None:
    assert pair.reference is not None
    ours, theirs = _rows(pair.engine, pair.reference)
    at = first_difference(ours, theirs)
    if at is None:
        return None
    row = [t for t in ours if isinstance(t, int)]
    return Parting(
        key=pair.engine.key,
        sample=pair.engine.sample,
        at=at,
        engine=_at(ours, at, trial),
        reference=_at(theirs, at, trial),
        context=before(row, at, trial.pieces) if row else f"after {''.join(map(str, ours[max(0, at - 24) : at]))!r}",
    )


def _at(row: Sequence[object], at: int, trial: Trial) -> str:
    if at >= len(row):
        return "the end"
    token = row[at]
    return spell(token, trial.pieces) if isinstance(token, int) else repr(token)


def _ends(answers: Sequence[Answer]) -> Ends:
    given = [a for a in answers if a.error is None]
    lengths = [n for a in given if (n := len(a.ids) if a.ids is not None else a.count) is not None]
    finish: dict[str, int] = {}
    for a in given:
        finish[a.finish or "not told"] = finish.get(a.finish or "not told", 0) + 1
    rewards = [a.reward for a in given if a.reward is not None]
    seconds = [a.seconds for a in given if a.seconds is not None]
    return Ends(
        answers=len(given),
        tokens_mean=fmean(lengths) if lengths else None,
        finish=finish,
        reward_mean=fmean(rewards) if rewards else None,
        seconds_mean=fmean(seconds) if seconds else None,
    )


def _rewards_differ(both: Sequence[Pair]) -> int | None:
    known = [(p.engine.reward, p.reference.reward) for p in both if p.reference and p.engine.reward is not None and p.reference.reward is not None]
    return sum(a != b for a, b in known) if known else None


def _unanswered(trial: Trial) -> list[Missing]:
    failed = [p.engine for p in trial.pairs if p.engine.error is not None]
    told = [Missing(what=f"{len(failed)} answers of the engine", reason=failed[0].error or "")] if failed else []
    other = [p.reference for p in trial.pairs if p.reference is not None and p.reference.error is not None]
    return told + ([Missing(what=f"{len(other)} answers of the reference", reason=other[0].error or "")] if other else [])


def _verdict(view: View, findings: Sequence[Found], both: Sequence[Pair], move: Move | None) -> Verdict:
    trouble = [f for f in findings if f.is_trouble]
    if trouble:
        return Verdict(state=State.DIFFER, summary=trouble[0].summary, certainty=trouble[0].certainty)
    failed = [p.engine.error for p in view.trial.pairs if p.engine.error is not None]
    if len(failed) * 2 > len(view.trial.pairs):
        said = f"{len(failed)} of {len(view.trial.pairs)} requests to the engine failed; the first: {failed[0]}"
        return Verdict(state=State.UNKNOWN, summary=said, certainty=Certainty.POSSIBLE)
    far = view.distance
    if far is not None and far.tokens >= MIN_TOKENS and view.size is not Size.UNTOLD:
        parted, cut = _greedy_partings(view, both)
        if parted and view.size is Size.SAME:
            return Verdict(state=State.DIFFER, summary=_parted(parted, both, far), certainty=Certainty.LIKELY)
        notes = [f.summary for f in findings]
        if parted:
            notes.append(f"{len(parted)} of {len(both)} greedy answers part; with --reference FOLDER near ties can be told from other sampling")
        if failed:
            notes.append(f"{len(failed)} of {len(view.trial.pairs)} requests to the engine failed")
        if cut:
            notes.append(f"{cut} answers are cut at the longest length of one side, and were compared up to there")
        said = f"the two sides agree on {far.tokens} tokens: rollout_probs_diff_mean {far.probs_diff_mean:.2g}, {far.logprob_diff_mean:.2g} nats"
        if move is not None and move.arrival is Arrival.ARRIVED:
            said += f"; the weight update arrived ({move.way:.0%} of the way)"
        elif move is not None and move.arrival is Arrival.UNKNOWN:
            said += "; whether the weight update arrived cannot be told: old and new weights differ too little on these tokens"
            return Verdict(state=State.UNKNOWN, summary=said, certainty=Certainty.POSSIBLE)
        return Verdict(state=State.AGREE, summary="; ".join([said, *notes]), certainty=Certainty.LIKELY)
    if both and view.trial.temperature == 0 and far is None:
        same = sum(a == b for a, b in (_rows(p.engine, p.reference) for p in both if p.reference))
        if same == len(both):
            return Verdict(state=State.AGREE, summary=f"all {same} greedy answers are the same; no log-probabilities", certainty=Certainty.POSSIBLE)
        said = f"{len(both) - same} of {len(both)} greedy answers differ; without log-probabilities the cause cannot be told"
        return Verdict(state=State.UNKNOWN, summary=said, certainty=Certainty.POSSIBLE)
    return Verdict(state=State.UNKNOWN, summary=_unknown(view), certainty=Certainty.POSSIBLE)


def _greedy_partings(view: View, both: Sequence[Pair]) -> tuple[list[tuple[Pair, int]], int]:
    """Greedy answers that take different tokens, and how many only end earlier on one side because they were as long as they may be.

    Only where nothing scores the engine's tokens: a score tells why they part.
    """
    if view.trial.temperature != 0 or any(p.score is not None for p in both):
        return [], 0
    parted, cut = [], 0
    for pair in both:
        assert pair.reference is not None
        ours, theirs = _rows(pair.engine, pair.reference)
        at = first_difference(ours, theirs)
        if at is None or pair.engine.prompt_ids != pair.prompt_ids:
            continue
        shorter = pair.engine if at >= len(ours) else pair.reference if at >= len(theirs) else None
        if shorter is not None and shorter.finish == "length":
            cut += 1
        else:
            parted.append((pair, at))
    return parted, cut


def _parted(parted: Sequence[tuple[Pair, int]], both: Sequence[Pair], far: Distance) -> str:
    """Equal numbers, other tokens: no rounding explains that."""
    ended = 0
    for pair, at in parted:
        assert pair.reference is not None
        ended += sum(side.finish == "stop" and at >= len(_rows(side, side)[0]) - 1 for side in (pair.engine, pair.reference)) == 1
    said = f"the log-probabilities agree on {far.tokens} tokens, but {len(parted)} of {len(both)} greedy answers part: "
    if ended * 2 > len(parted):
        return said + f"in {ended} of them one side ends where the other goes on: compare end tokens and stop settings"
    return said + "one side did not take the best token: compare seed, temperature and penalties of the requests"


def _unknown(view: View) -> str:
    far = view.distance
    if far is None or far.tokens < MIN_TOKENS:
        count = far.tokens if far else 0
        return f"only {count} tokens have log-probabilities on both sides; {MIN_TOKENS} are needed"
    return (
        f"log-probabilities are {far.logprob_diff_mean:.2g} nats apart: more than usual, too little to tell weights from precision; "
        "give --reference FOLDER so that rounding can be measured"
    )
