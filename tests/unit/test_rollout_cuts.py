"""Prompts and answers that an engine cuts, tokens that are not drawn from the distribution that was asked for, requests that fail."""

from __future__ import annotations

import math
import random

import msgspec
import pytest

from ray_rl_debug.rollouts.answers import Answer, Cause, Chance, Found, Pair, Score, State, Trial
from ray_rl_debug.rollouts.chance import measure
from ray_rl_debug.rollouts.compare import compare

SHARES = (0.4, 0.2, 0.15, 0.1, 0.08, 0.05, 0.02)
"""Of the tokens 0 to 6, at each place."""


def of(found: tuple[Found, ...]) -> list[Cause]:
    return [f.cause for f in found if f.is_trouble]


def sampled(shares: tuple[float, ...], asked: float = 1.0, answers: int = 20, length: int = 40) -> Trial:
    """Answers drawn by `shares`, scored by SHARES at the temperature `asked`."""
    draw = random.Random(3)
    plain = [math.log(s) for s in SHARES]
    powers = [s ** (1 / asked) for s in SHARES]
    after = [math.log(p / sum(powers)) for p in powers]
    pairs = []
    for n in range(answers):
        ids = tuple(draw.choices(range(len(shares)), shares)[0] for _ in range(length))
        chances = tuple(chance(t, after, plain if asked != 1 else None) for t in ids)
        scaled = tuple(after[t] for t in ids) if asked != 1 else None
        score = Score(key=f"q{n}", logprobs=tuple(plain[t] for t in ids), scaled=scaled, chances=chances)
        engine = Answer(key=f"q{n}", prompt_ids=(9, n), ids=ids, logprobs=score.logprobs, finish="length")
        pairs.append(Pair(engine=engine, score=score, prompt_ids=(9, n)))
    return Trial(pairs=tuple(pairs), temperature=asked, max_tokens=length)


def chance(token: int, logprobs: list[float], plain: list[float] | None) -> Chance:
    def moments(row: list[float]) -> tuple[float, float]:
        mean = sum(math.exp(v) * v for v in row)
        return row[token] - mean, sum(math.exp(v) * (v - mean) ** 2 for v in row)

    excess, variance = moments(logprobs)
    at_one = moments(plain) if plain is not None else (None, None)
    return Chance(excess=excess, variance=variance, rank=token + 1, plain_excess=at_one[0], plain_variance=at_one[1])


def prompts(rows: list[tuple[tuple[int, ...] | int, tuple[int, ...]]]) -> Trial:
    """What the engine reads of each prompt (its tokens, or only their number), and the whole."""
    pairs = []
    for n, (ours, theirs) in enumerate(rows):
        told = {"prompt_count": ours} if isinstance(ours, int) else {"prompt_ids": ours}
        pairs.append(Pair(engine=Answer(key=f"q{n}", ids=(1, 2), **told), prompt_ids=theirs))  # type: ignore[arg-type]
    return Trial(pairs=tuple(pairs), temperature=0.0, has_template=True)


def test_tokens_that_are_drawn_as_asked_say_nothing() -> None:
    for asked in (1.0, 0.6):
        powers = tuple(s ** (1 / asked) for s in SHARES)
        trial = sampled(powers, asked)
        found = measure(trial)
        assert found is not None
        assert abs(found.deviations) < 3
        assert (found.tokens, compare(trial).verdict.state) == (800, State.AGREE)


@pytest.mark.parametrize(
    ("shares", "asked", "named"),
    [
        (SHARES[:3], 1.0, "the rarest token taken is number 3 of its place"),
        (SHARES[:1], 1.0, "only the most probable token is taken"),
        (tuple(s**2 for s in SHARES), 1.0, "more probable"),
        (SHARES, 0.6, "the tokens fit temperature 1: the engine does not use 0.6"),
        (tuple(s**0.3 for s in SHARES), 1.0, "a higher temperature or a penalty"),
    ],
)
def test_tokens_that_are_drawn_otherwise_are_told(shares: tuple[float, ...], asked: float, named: str) -> None:
    found = compare(sampled(shares, asked))
    assert (of(found.findings), found.verdict.state) == ([Cause.CHOICE], State.DIFFER)
    assert named in found.verdict.summary


def test_equal_answers_count_once_and_few_tokens_say_nothing() -> None:
    trial = sampled(SHARES[:3], answers=4)
    assert measure(trial) is None, "160 tokens"
    again = msgspec.structs.replace(trial, pairs=trial.pairs * 10)
    assert measure(again) is None


def test_prompts_that_are_cut_at_one_length_are_no_other_template() -> None:
    long, longer = tuple(range(10, 30)), tuple(range(10, 40))
    for left, where in (((-12, None), "at the beginning"), ((None, 12), "at the end")):
        found = compare(prompts([((2, 3), (2, 3)), (long[slice(*left)], long), (longer[slice(*left)], longer)]))
        assert of(found.findings) == [Cause.PROMPT], where
        assert "cuts prompts to 12 tokens: 2 of 3 prompts are longer" in found.verdict.summary
        assert where in found.verdict.summary
    counted = compare(prompts([(2, (2, 3)), (12, long), (12, longer)]))
    assert of(counted.findings) == [Cause.PROMPT]


def test_what_is_missing_from_each_prompt_is_the_template() -> None:
    system = (7, 7, 7)
    missing = compare(prompts([((2, 3), (*system, 2, 3)), ((2, 4), (*system, 2, 4)), ((2, 5), (*system, 2, 5))]))
    assert of(missing.findings) == [Cause.CHAT_TEMPLATE], "the same words everywhere"
    unlike = compare(prompts([((2, 3), (*system, 2, 3)), ((2, 4, 5), (*system, 2, 4, 5))]))
    assert of(unlike.findings) == [Cause.CHAT_TEMPLATE]
    alone = compare(prompts([((2, 3), (*system, 2, 3))]))
    assert of(alone.findings) == [Cause.CHAT_TEMPLATE], "one prompt shows no limit"


def test_answers_that_are_cut_before_their_longest_length() -> None:
    trial = sampled(SHARES)
    assert of(compare(trial).findings) == []
    short = msgspec.structs.replace(trial, max_tokens=64)
    found = compare(short)
    assert of(found.findings) == [Cause.LENGTH]
    assert "20 of 20, always after 40 tokens: a limit of the server" in found.verdict.summary
    assert of(compare(msgspec.structs.replace(trial, max_tokens=41)).findings) == [], "the last token may not be counted"
    rows = [(p.engine, tuple(range(n + 1))) for n, p in enumerate(short.pairs)]
    full = [Pair(engine=Answer(key=a.key, prompt_ids=ids, ids=(a.ids or ())[: 41 - len(ids)], finish="length"), prompt_ids=ids) for a, ids in rows]
    assert "together have 41 tokens: the engine's context is full" in compare(msgspec.structs.replace(short, pairs=tuple(full))).verdict.summary


def test_an_engine_that_fails_most_requests_does_not_agree() -> None:
    trial = sampled(SHARES)

    def failing(count: int) -> Trial:
        bad = tuple(Pair(engine=Answer(key=f"f{n}", error="InternalServerError: Error code: 500")) for n in range(count))
        return msgspec.structs.replace(trial, pairs=(*trial.pairs, *bad))

    few, most = compare(failing(3)), compare(failing(21))
    assert few.verdict.state is State.AGREE
    assert "3 of 23 requests to the engine failed" in few.verdict.summary
    assert most.verdict.state is State.UNKNOWN
    assert "21 of 41 requests to the engine failed" in most.verdict.summary
    assert "500" in most.verdict.summary
