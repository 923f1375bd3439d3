"""Differences that hang on the tokens before: told apart from other weights by what stays equal."""

from __future__ import annotations

import random

import msgspec
import pytest

from ray_rl_debug.rollouts.answers import Answer, Cause, Pair, Score, Trial
from ray_rl_debug.rollouts.compare import compare

NOISE = 0.01


def pair(name: str, gaps: list[float], draw: random.Random, prompt: tuple[int, ...] = (2, 10, 11, 3)) -> Pair:
    """An answer whose log-probabilities are off by normal `gaps`, each given in multiples of rounding."""
    plain = [-2 - draw.random() for _ in gaps]
    theirs = tuple(p + draw.gauss(0, NOISE) * g for p, g in zip(plain, gaps, strict=True))
    ids = tuple(range(20, 20 + len(gaps)))
    rounded = tuple(p + draw.gauss(0, NOISE) for p in plain)
    return Pair(
        engine=Answer(key=name, prompt_ids=prompt, ids=ids, logprobs=theirs, count=len(ids), finish="length"),
        score=Score(key=name, logprobs=tuple(plain), rounded=rounded, best_ids=ids, best_logprobs=tuple(plain)),
        prompt_ids=prompt,
    )


def trial(first: float, later: float, alone: float | None, answers: int = 12) -> Trial:
    draw = random.Random(3)
    return Trial(
        pairs=tuple(pair(f"q{n}", [first, *[later] * 19], draw) for n in range(answers)),
        alone=() if alone is None else tuple(pair(f"{n} alone", [alone], draw, (n,)) for n in range(12)),
        temperature=0.0,
        precision="float32",
        rounding="bfloat16",
    )


@pytest.mark.parametrize(
    ("first", "later", "alone", "cause", "said"),
    [
        (20, 20, 0.0, Cause.ATTENTION, "positions or attention differ"),
        (20, 20, 1.0, Cause.ATTENTION, "positions or attention differ"),
        (20, 20, 20, Cause.WEIGHTS, "configuration or code"),
        (20, 20, None, Cause.WEIGHTS, "configuration or code"),
        (6, 6, 2.0, Cause.WEIGHTS, "configuration or code"),
        (1, 8, None, Cause.WEIGHTS, "configuration or code"),
        (0.0, 20, 0.0, Cause.ATTENTION, "key-value cache"),
        (0.0, 1, 0.0, Cause.ATTENTION, "key-value cache"),
        (1, 1, 1, Cause.PRECISION, "a quantised copy"),
    ],
)
def test_what_stays_equal_tells_the_cause(first: float, later: float, alone: float | None, cause: Cause, said: str) -> None:
    found = compare(trial(first, later, alone)).findings
    assert [f.cause for f in found] == [cause]
    assert said in found[0].summary


@pytest.mark.parametrize(
    ("dtype", "first", "later", "said"),
    [
        ("fp8_e4m3", 1, 2.5, "keeps its key-value cache in fp8_e4m3"),
        ("fp8", 2, 8, "keeps its key-value cache in fp8"),
        ("fp8", 8, 8, "whether the weights differ too is seen only without it"),
        # no more than rounding, more than any cache makes, a cache of the model's own precision, an engine that does not tell
        ("fp8_e4m3", 1, 1, None),
        ("fp8_e4m3", 60, 60, None),
        ("auto", 8, 8, None),
        ("auto", 1, 2.5, None),
        ("bfloat16", 1, 2.5, None),
        (None, 1, 2.5, None),
    ],
)
def test_a_coarse_cache_under_an_engine_that_rounds_is_told_by_the_engine_only(
    dtype: str | None, first: float, later: float, said: str | None
) -> None:
    (found,) = compare(msgspec.structs.replace(trial(first, later, None, answers=40), cache_dtype=dtype)).findings
    assert (found.id == "RRD240", found.certainty.value == "possible" or not said) == (said is not None, True)
    assert (said or "") in found.summary
    assert any("the engine says that it keeps" in e for e in found.evidence) == (dtype is not None and dtype.startswith("fp8"))


def rows(every: int, far: float) -> Trial:
    """Each so many places one token is taken that is far off, by so many nats; all others agree."""
    given = trial(0.0, 0.0, None)
    pairs = []
    for number, p in enumerate(given.pairs):
        assert p.engine.logprobs is not None and p.engine.ids is not None and p.score is not None
        hit = [at % every == number % every and at > 0 for at in range(20)]
        logprobs = tuple(v - far * h if v is not None else v for v, h in zip(p.engine.logprobs, hit, strict=True))
        ids = tuple(7 if h else i for i, h in zip(p.engine.ids, hit, strict=True))
        pairs.append(msgspec.structs.replace(p, engine=msgspec.structs.replace(p.engine, ids=ids, logprobs=logprobs)))
    return msgspec.structs.replace(given, pairs=tuple(pairs), pieces={7: "<call>"})


def test_a_token_that_is_far_off_wherever_it_is_taken() -> None:
    found = compare(rows(12, 3.0)).findings
    assert [(f.id, f.certainty.value, f.is_trouble) for f in found] == [("RRD241", "likely", True)]
    assert "the output row of one token differs: wherever '<call>' (7) is taken" in found[0].summary


def test_many_places_that_are_off_are_no_single_token() -> None:
    assert "RRD241" not in {f.id for f in compare(rows(2, 3.0)).findings}


def test_a_healthy_engine_with_answers_that_wander_from_their_start_is_left_alone() -> None:
    """The look-alikes of RRD240 and RRD241: rounding that grows a little along the answers, and single tokens that rounding hits hardest."""
    draw = random.Random(5)
    spread = trial(0.0, 0.0, None)
    pairs = tuple(pair(f"q{n}", [1 + 0.02 * at + 4 * (draw.random() < 0.03) for at in range(20)], draw) for n in range(12))
    found = compare(msgspec.structs.replace(spread, pairs=pairs))
    assert [(f.cause, f.is_trouble) for f in found.findings] == [(Cause.PRECISION, False)]
    assert found.verdict.state.value == "agree"
    exact = compare(spread)
    assert (exact.findings, exact.verdict.state.value) == ((), "agree")


def test_few_answers_tell_nothing_of_their_first_tokens() -> None:
    assert [f.cause for f in compare(trial(0.0, 20, None, answers=5)).findings] == [Cause.WEIGHTS]


def test_without_a_measure_of_rounding_nothing_is_told_of_the_context() -> None:
    given = trial(20, 20, 0.0)
    bare = tuple(msgspec.structs.replace(p, score=msgspec.structs.replace(p.score, rounded=None)) for p in given.pairs if p.score is not None)
    found = compare(msgspec.structs.replace(given, pairs=bare, rounding=None)).findings
    assert [f.cause for f in found] == [Cause.WEIGHTS]
