"""Everything a comparison needs, from engines, references and recordings, as one trial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

import msgspec

from ray_rl_debug.endpoints.asking import Show, Ticker
from ray_rl_debug.endpoints.openai_client import Endpoint, Sampling
from ray_rl_debug.endpoints.prompts import Prompt
from ray_rl_debug.endpoints.transformers_model import Reference
from ray_rl_debug.rollouts.alignment import common
from ray_rl_debug.rollouts.answers import Answer, Missing, Pair, Probe, Score, Trial

MAX_PROBES = 8
MAX_ALONE = 16
"""Single tokens after which the engine is asked for the next one."""
MAX_PROBE = 2000
"""Characters of a plain text that both sides cut."""
WORTH_ROUNDING = 1e-4
"""Nats: below this mean difference both sides compute the same, and what rounding does need not be measured."""


def probes(prompts: Sequence[Prompt], engine: Endpoint, other: Reference | Endpoint) -> tuple[Probe, ...]:
    """Plain texts of the prompts, cut by both sides; empty if one of them does not tell."""
    found = []
    for text in dict.fromkeys(word[:MAX_PROBE] for p in prompts for word in p.words()):
        ours = engine.cut(text)
        theirs = (other.cut(text), None) if isinstance(other, Reference) else other.cut(text)
        if ours is None or theirs is None:
            return ()
        pieces = theirs[1]
        if isinstance(other, Reference):
            known = other.pieces(theirs[0])
            pieces = tuple(known[i] for i in theirs[0])
        found.append(Probe(text=text, engine_ids=ours[0], reference_ids=theirs[0], engine_pieces=ours[1], reference_pieces=pieces))
        if len(found) == MAX_PROBES:
            break
    return tuple(found)


def after_one_token(answers: Iterable[Answer], engine: Endpoint) -> list[Answer]:
    """The engine's best token after single tokens of its prompts; empty where it takes no tokens as a prompt."""
    tokens = list(dict.fromkeys(t for a in answers for t in a.prompt_ids or ()))[:MAX_ALONE]
    found = []
    for token in tokens:
        answer = engine.answer(Prompt(key=f"{token} alone", ids=(token,)), Sampling(max_tokens=1))
        if answer.error is not None or answer.ids is None or answer.prompt_ids != (token,):
            return []
        found.append(answer)
    return found


def spell_prompts(answers: Iterable[Answer], engine: Endpoint) -> list[Answer]:
    """The answers with the text of the prompts as the engine spells it; a prompt is asked once."""
    texts: dict[tuple[int, ...], str | None] = {}
    done = []
    for a in answers:
        if a.prompt_ids is not None and a.prompt_text is None:
            if a.prompt_ids not in texts:
                texts[a.prompt_ids] = engine.spell(a.prompt_ids)
            done.append(msgspec.structs.replace(a, prompt_text=texts[a.prompt_ids]))
        else:
            done.append(a)
    return done


def fill_tokens(answers: Iterable[Answer], reference: Reference, prompts: Mapping[str, Prompt]) -> list[Answer]:
    """Token ids for engines that only tell texts: the reference cuts the text, and is believed if it finds the very same pieces."""
    done = []
    for a in answers:
        if a.ids is None and a.pieces is not None and a.text is not None:
            a = msgspec.structs.replace(a, ids=_tokens(a.pieces, a.text, reference))
        if a.prompt_ids is None and a.key in prompts:
            rendered = reference.render(prompts[a.key])
            if a.prompt_count in (None, len(rendered)):  # the same length: take them for the same tokens
                a = msgspec.structs.replace(a, prompt_ids=rendered)
        done.append(a)
    return done


def _tokens(pieces: Sequence[str], text: str, reference: Reference) -> tuple[int, ...] | None:
    ids = reference.cut(text)
    if len(ids) + 1 == len(pieces):  # an end token, which the text hides
        ids += tuple(t for t in reference.end_tokens() if reference.spell([t]) == pieces[-1])[:1]
    return ids if [reference.spell([i]) for i in ids] == list(pieces) else None


def against_model(
    answers: Sequence[Answer],
    own: Mapping[tuple[str, int], Answer],
    reference: Reference,
    *,
    temperature: float | None,
    has_template: bool,
    found_probes: tuple[Probe, ...],
    prompts: Mapping[str, Prompt],
    name: str,
    show: Show,
    engine: Endpoint | None = None,
) -> tuple[Trial, list[Missing]]:
    """The trial of an engine's answers against a model in Transformers; `own` are the model's own answers.

    `engine` is asked a little more where the two differ; None: it is not there any more.
    """
    rendered = {key: reference.render(prompt) for key, prompt in prompts.items()}
    missing: list[Missing] = []
    scores: dict[tuple[str, int], Score] = {}
    given = [a for a in answers if a.error is None]
    ticker = Ticker(show, len(given))
    for number, answer in enumerate(given, 1):
        score = reference.score(answer, temperature or 0.0)
        if score is not None:
            scores[answer.key, answer.sample] = score
        ticker.tick(number, f"reference: {number} of {len(given)} answers scored in {reference.precision}")
    if len(scores) < len(given):
        reason = "the engine tells no token ids that the reference knows"
        missing.append(Missing(what=f"what the reference thinks of {len(given) - len(scores)} answers", reason=reason))
    if not found_probes:
        missing.append(Missing(what="how the engine cuts plain text", reason="the engine has no /tokenize, or was not asked"))
    rounding = None
    single: list[Answer] = []
    if _apart(given, scores) > WORTH_ROUNDING:
        rounding = reference.rounding
        single = after_one_token(given, engine) if engine is not None else []
        scores |= {(a.key, a.sample): s for a in single if (s := reference.score(a)) is not None}
        reference.round()
        for number, answer in enumerate((*single, *given), 1 - len(single)):
            again = reference.score(answer)
            if again is not None and (answer.key, answer.sample) in scores:
                rounded = tuple(v for v in again.logprobs if v is not None)
                scores[answer.key, answer.sample] = msgspec.structs.replace(scores[answer.key, answer.sample], rounded=rounded)
            ticker.tick(number, f"reference: {number} of {len(given)} answers scored in {rounding}")
    seen = [i for a in (*given, *own.values()) for i in (*(a.prompt_ids or ()), *(a.ids or ()))]
    seen += [i for ids in rendered.values() for i in ids]
    ends = reference.end_tokens()
    trial = Trial(
        pairs=tuple(
            Pair(
                engine=a,
                reference=own.get((a.key, a.sample)),
                score=scores.get((a.key, a.sample)),
                prompt_ids=rendered.get(a.key),
                prompt_text=reference.spell(rendered[a.key]) if a.key in rendered else None,
            )
            for a in answers
        ),
        alone=tuple(Pair(engine=a, score=scores.get((a.key, a.sample))) for a in single),
        probes=found_probes,
        pieces=reference.pieces([*seen, *ends]),
        end_tokens=ends,
        temperature=temperature,
        has_template=has_template,
        precision=reference.precision,
        rounding=rounding,
        engine_name=name,
        reference_name=f"{reference.name} in {reference.precision}",
    )
    return trial, missing


def against_answers(
    answers: Sequence[Answer],
    others: Mapping[tuple[str, int], Answer],
    *,
    temperature: float | None,
    has_template: bool,
    found_probes: tuple[Probe, ...],
    names: tuple[str, str],
    scorer: Endpoint | None = None,
) -> tuple[Trial, list[Missing]]:
    """The trial of two sides that both only answer: two endpoints, or two recordings."""
    missing: list[Missing] = []
    pairs = []
    for a in answers:
        score = None
        if scorer is not None and a.prompt_ids and a.ids:
            row = scorer.score(a.prompt_ids, a.ids)
            score = None if row is None else Score(key=a.key, sample=a.sample, logprobs=row)
        other = others.get((a.key, a.sample))
        texts = (other.prompt_ids, other.prompt_text) if other is not None else (None, None)
        pairs.append(Pair(engine=a, reference=other, score=score, prompt_ids=texts[0], prompt_text=texts[1]))
    if any(p.score is None for p in pairs):
        reason = "the reference scores no given tokens: only tokens up to the first difference are compared"
        missing.append(Missing(what="what the reference thinks of the engine's tokens", reason=reason))
    alone = sum(p.reference is None for p in pairs)
    if alone:
        missing.append(Missing(what=f"the reference's side of {alone} answers", reason="it has no answer with the same prompt and sample"))
    asked = {(a.key, a.sample) for a in answers}
    if more := sum(key not in asked for key in others):
        missing.append(Missing(what=f"{more:,} more answers of the reference", reason="the engine has no answer with the same prompt and sample"))
    pieces = {i: t for a in (*answers, *others.values()) for i, t in zip(a.ids or (), a.pieces or (), strict=False)}
    return (
        Trial(
            pairs=tuple(pairs),
            probes=found_probes,
            pieces=pieces,
            temperature=temperature,
            has_template=has_template,
            engine_name=names[0],
            reference_name=names[1],
        ),
        missing,
    )


def rescored(old: Iterable[Answer], engine: Endpoint) -> list[Answer] | None:
    """The tokens of old answers with the engine's log-probabilities of now; None if the engine scores no given tokens."""
    done = []
    for a in old:
        if a.error is None and a.prompt_ids and a.ids:
            row = engine.score(a.prompt_ids, a.ids)
            if row is None:
                return None
            done.append(Answer(key=a.key, sample=a.sample, prompt_ids=a.prompt_ids, ids=a.ids, pieces=a.pieces, logprobs=row, finish=a.finish))
    return done


def before_update(old: Iterable[Answer], now: Iterable[Answer]) -> tuple[Score, ...]:
    """Log-probabilities from before an update of the tokens of now: as far as both answers begin alike."""
    known = {(a.key, a.sample): a for a in old}
    found = []
    for a in now:
        b = known.get((a.key, a.sample))
        if b is None or b.logprobs is None or a.ids is None or b.ids is None or a.prompt_ids != b.prompt_ids:
            continue
        found.append(Score(key=a.key, sample=a.sample, logprobs=b.logprobs[: common(a.ids, b.ids)]))
    return tuple(found)


def _apart(answers: Iterable[Answer], scores: Mapping[tuple[str, int], Score]) -> float:
    gaps = [
        abs(e - r)
        for a in answers
        if (score := scores.get((a.key, a.sample))) is not None
        for e, r in zip(a.logprobs or (), score.logprobs, strict=False)
        if e is not None and r is not None
    ]
    return fmean(gaps) if gaps else 0.0
