"""Rollouts beside each other, as pure data: each cause is told alone, the commonest first, and what cannot be told stays unknown."""

from __future__ import annotations

import math
import random
from pathlib import Path

import msgspec
import pytest

from ray_rl_debug.commands.cli import main
from ray_rl_debug.endpoints import comparing
from ray_rl_debug.endpoints.comparing import Asked, run
from ray_rl_debug.endpoints.recordings import Head
from ray_rl_debug.model.codec import encode
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.render.html import rollouts as page
from ray_rl_debug.render.rollout_text import render
from ray_rl_debug.rollouts.alignment import agreement, changes, common, first_difference
from ray_rl_debug.rollouts.answers import Answer, Cause, Found, Missing, Pair, Probe, Score, State, Trial
from ray_rl_debug.rollouts.compare import Comparison, compare
from ray_rl_debug.rollouts.differences import distance, quantile
from ray_rl_debug.rollouts.rules import RULES
from ray_rl_debug.rollouts.update import Arrival

PIECES = {n: f"t{n} " for n in range(60)} | {0: "<pad>", 1: "<end>", 2: "<user>", 3: "<assistant>", 4: "<think>"}
PROMPT = (2, 10, 11, 3)
NOISE = 0.01


def trial(
    shift: float = 0.0,
    noise: float = 0.0,
    likeness: float = 0.0,
    answers: int = 6,
    length: int = 20,
    temperature: float | None = 0.0,
    seed: int = 1,
) -> Trial:
    """Answers whose log-probabilities differ from the reference's by a normal `shift`, and by `noise` of which `likeness` is that of rounding."""
    draw = random.Random(seed)
    pairs = []
    for n in range(answers):
        ids = tuple(draw.randrange(10, 60) for _ in range(length))
        plain = [-abs(draw.gauss(1.0, 0.5)) - 0.1 for _ in ids]
        rounding = [draw.gauss(0, NOISE) for _ in ids]
        own = [likeness * r + math.sqrt(1 - likeness**2) * draw.gauss(0, NOISE) for r in rounding]
        theirs = tuple(min(p + draw.gauss(0, 1) * shift + (noise / NOISE) * o, 0.0) for p, o in zip(plain, own, strict=True))
        pairs.append(
            Pair(
                engine=Answer(key=f"q{n}", prompt_ids=PROMPT, ids=ids, logprobs=theirs, count=length, finish="length"),
                score=Score(
                    key=f"q{n}",
                    logprobs=tuple(plain),
                    rounded=tuple(p + r for p, r in zip(plain, rounding, strict=True)),
                    best_ids=ids,
                    best_logprobs=tuple(plain),
                ),
                prompt_ids=PROMPT,
            )
        )
    probes = (Probe(text="a b", engine_ids=(10, 11), reference_ids=(10, 11)),)
    return Trial(
        pairs=tuple(pairs),
        probes=probes,
        pieces=PIECES,
        end_tokens={1: "generation_config.json"},
        temperature=temperature,
        has_template=True,
        precision="float32",
        rounding="bfloat16",
    )


def told(found: Comparison) -> list[Cause]:
    return [f.cause for f in found.findings if f.is_trouble]


def changed(given: Trial, **engine: object) -> Trial:
    """The trial with other fields in each of the engine's answers."""
    pairs = tuple(msgspec.structs.replace(p, engine=msgspec.structs.replace(p.engine, **engine)) for p in given.pairs)
    return msgspec.structs.replace(given, pairs=pairs)


def test_rows_part_where_they_differ() -> None:
    assert first_difference((1, 2, 3), (1, 2, 3)) is None
    assert first_difference((1, 2), (1, 2, 3)) == 2
    assert common((1, 9, 3), (1, 2, 3)) == 1
    assert agreement((1, 2, 3, 4), (1, 9, 3)) == 0.5
    assert agreement((), ()) is None
    assert changes((2, 10, 3, 4), (2, 10, 3), PIECES) == ["at the end, the engine adds '<think>'"]
    assert changes((10, 3), (2, 10, 3), PIECES) == ["at the beginning, the engine leaves out '<user>'"]
    assert changes((2, 12, 3), (2, 10, 3), PIECES) == ["after '<user>', the engine has 't12 ' instead of 't10 '"]
    assert len(changes(tuple(range(9000)), tuple(range(1, 9001)), PIECES)) == 1, "long rows are not aligned in full"


def test_the_numbers_of_a_distance() -> None:
    far = distance([math.log(0.5), math.log(0.25)], [math.log(0.4), math.log(0.25)])
    assert far is not None
    assert far.probs_diff_mean == pytest.approx(0.05)
    assert far.probs_diff_max == pytest.approx(0.1)
    assert far.logprob_diff_mean == pytest.approx(math.log(1.25) / 2)
    assert far.kl == pytest.approx((0.8 - 1 + math.log(1.25)) / 2)
    assert far.pearson == pytest.approx(1.0)
    assert distance([], []) is None
    assert distance([-1.0, -1.0], [-1.0, -1.0]).pearson is None  # type: ignore[union-attr]
    assert [quantile([0.0, 1.0, 2.0], q) for q in (0.0, 0.25, 0.5, 1.0)] == [0.0, 0.5, 1.0, 2.0]


def test_equal_sides_agree() -> None:
    found = compare(trial())
    assert (found.verdict.state, found.findings, found.best, found.size.value) == (State.AGREE, (), 1.0, "same")


def test_rounding_is_no_trouble_and_is_surer_where_it_goes_the_same_ways() -> None:
    alike, other = compare(trial(noise=NOISE, likeness=0.8)), compare(trial(noise=NOISE))
    for found, certainty in ((alike, Certainty.LIKELY), (other, Certainty.POSSIBLE)):
        assert found.verdict.state is State.AGREE
        assert [(f.cause, f.certainty) for f in found.findings] == [(Cause.PRECISION, certainty)]


def test_coarse_rounding_above_the_limit_of_the_faq_is_trouble() -> None:
    given = trial(noise=6 * NOISE, likeness=0.9)
    coarse = [
        msgspec.structs.replace(
            p,
            score=msgspec.structs.replace(
                p.score, rounded=tuple(r + 6 * (q - r) for q, r in zip(p.score.rounded or (), p.score.logprobs, strict=True) if r is not None)
            ),
        )
        for p in given.pairs
        if p.score
    ]
    found = compare(msgspec.structs.replace(given, pairs=tuple(coarse)))
    assert told(found) == [Cause.PRECISION]
    assert found.distance is not None
    assert found.distance.probs_diff_mean > 0.01


def test_more_than_rounding_is_the_weights_with_the_token_named() -> None:
    found = compare(trial(shift=0.2))
    assert told(found) == [Cause.WEIGHTS]
    assert "(prompt q" in found.verdict.summary
    assert "times what bfloat16 instead of float32 makes" in found.verdict.summary


def test_the_template_is_told_before_the_weights() -> None:
    found = compare(changed(trial(shift=0.2), prompt_ids=(*PROMPT, 4), prompt_text="a<think>"))
    assert told(found) == [Cause.CHAT_TEMPLATE, Cause.WEIGHTS]
    assert "at the end, the engine adds '<think>'" in found.verdict.summary
    assert found.verdict.certainty is Certainty.PROVEN


def test_without_probes_the_template_may_be_the_tokenizer() -> None:
    given = msgspec.structs.replace(changed(trial(), prompt_ids=(*PROMPT, 4)), probes=())
    found = compare(given)
    assert found.verdict.certainty is Certainty.LIKELY
    assert "or the tokenizer" in found.verdict.summary


def test_the_tokenizer_hides_the_template() -> None:
    probe = Probe(text="a b", engine_ids=(10, 12), reference_ids=(10, 11), engine_pieces=("a", "B"), reference_pieces=("a", "b"))
    found = compare(msgspec.structs.replace(changed(trial(), prompt_ids=(9, 9)), probes=(probe,)))
    assert told(found) == [Cause.TOKENIZER]
    assert "token 2 is 'B' (12) to the engine and 'b' (11) to the reference" in found.verdict.summary


@pytest.mark.parametrize(
    ("piece", "is_told"),
    [("other ", True), (" t10", False), ("", False), ("�", False), ("é", False)],
    ids=["other", "space", "hidden", "part", "beyond"],
)
def test_tokens_that_are_spelled_differently(piece: str, is_told: bool) -> None:
    given = trial(answers=1)
    answer = msgspec.structs.replace(given.pairs[0].engine, ids=(10,) * 20, pieces=(piece,) * 20)
    found = compare(msgspec.structs.replace(given, pairs=(msgspec.structs.replace(given.pairs[0], engine=answer),)))
    assert (Cause.TOKENIZER in told(found)) is is_told


@pytest.mark.parametrize(
    ("changes_", "said"),
    [
        ({"ids": (11,) * 9 + (1,) + (12,) * 10}, "go on after the end token '<end>' (1)"),
        ({"finish": "stop"}, "which is no end token of the reference"),
        ({"finish": "stop", "stop": 7}, "which is no end token of the reference"),
        ({"finish": "stop", "count": 21}, None),
        ({"finish": "stop", "stop": "Observation:"}, None),
        ({"ids": (11,) * 19 + (1,), "finish": "stop"}, None),
    ],
    ids=["past", "stranger", "told", "hidden", "text", "right"],
)
def test_end_tokens(changes_: dict[str, object], said: str | None) -> None:
    found = compare(changed(trial(), **changes_))
    assert told(found) == ([Cause.END_TOKEN] if said else [])
    assert said is None or said in found.verdict.summary


def test_a_better_token_that_was_not_taken() -> None:
    given = trial()
    first = given.pairs[0]
    assert first.score is not None
    row = first.score.logprobs
    best = msgspec.structs.replace(
        first.score, best_ids=(59, *(first.engine.ids or ())[1:]), best_logprobs=((row[0] or 0) + 0.9, *map(float, row[1:]))
    )  # type: ignore[arg-type]
    clear = msgspec.structs.replace(given, pairs=(msgspec.structs.replace(first, score=best), *given.pairs[1:]))
    assert told(compare(clear)) == [Cause.CHOICE]
    assert told(compare(msgspec.structs.replace(clear, temperature=1.0))) == [], "a sample need not be the best"
    near = msgspec.structs.replace(best, best_logprobs=((row[0] or 0) + 0.01, *map(float, row[1:])))  # type: ignore[arg-type]
    tie = compare(msgspec.structs.replace(given, pairs=(msgspec.structs.replace(first, score=near), *given.pairs[1:])))
    assert (told(tie), tie.ties) == ([], 1)


def test_numbers_after_temperature_are_not_taken_for_weights() -> None:
    given = trial(temperature=0.5)
    pairs = []
    for p in given.pairs:
        assert p.score is not None
        scaled = tuple(1.7 * (v or 0) for v in p.score.logprobs)
        pairs.append(
            msgspec.structs.replace(
                p, engine=msgspec.structs.replace(p.engine, logprobs=scaled), score=msgspec.structs.replace(p.score, scaled=scaled, rounded=None)
            )
        )
    found = compare(msgspec.structs.replace(given, pairs=tuple(pairs)))
    assert [f.cause for f in found.findings] == [Cause.TEMPERATURE]
    assert found.verdict.state is State.AGREE


@pytest.mark.parametrize("value", [float("nan"), 0.5, -9999.0])
def test_numbers_that_no_model_gives(value: float) -> None:
    given = trial()
    row = (value, *(given.pairs[0].engine.logprobs or ())[1:])
    first = msgspec.structs.replace(given.pairs[0], engine=msgspec.structs.replace(given.pairs[0].engine, logprobs=row))
    found = compare(msgspec.structs.replace(given, pairs=(first, *given.pairs[1:])))
    assert told(found)[0] is Cause.BROKEN
    assert "token 1 of the answer to prompt q0" in found.verdict.summary


@pytest.mark.parametrize(
    ("moved", "arrival"), [(0.0, Arrival.MISSING), (0.5, Arrival.PARTIAL), (1.0, Arrival.ARRIVED)], ids=["missing", "partial", "arrived"]
)
@pytest.mark.parametrize("step", [0.2, 0.05])
def test_how_far_an_update_came_also_below_rounding(moved: float, arrival: Arrival, step: float) -> None:
    """The step is 20 or 5 times what rounding makes on 600 tokens; the second one is found by its direction."""
    draw, given = random.Random(3), trial(answers=30, noise=NOISE)
    before, pairs = [], []
    for p in given.pairs:
        assert p.score is not None
        assert p.engine.logprobs is not None
        ways = [draw.gauss(0, step) for _ in p.score.logprobs]
        before.append(Score(key=p.engine.key, logprobs=tuple((r or 0) - w for r, w in zip(p.score.logprobs, ways, strict=True))))
        now = tuple((e or 0) - (1 - moved) * w for e, w in zip(p.engine.logprobs, ways, strict=True))
        pairs.append(msgspec.structs.replace(p, engine=msgspec.structs.replace(p.engine, logprobs=now)))
    found = compare(msgspec.structs.replace(given, pairs=tuple(pairs), before=tuple(before)))
    assert found.update is not None
    assert found.update.arrival is arrival
    assert found.update.share == pytest.approx(moved, abs=0.05)
    assert (Cause.UPDATE in told(found)) is (moved < 1)


def test_an_update_that_changes_nothing_here_is_unknown() -> None:
    given = trial(noise=NOISE)
    before = tuple(Score(key=p.engine.key, logprobs=p.score.logprobs) for p in given.pairs if p.score)
    found = compare(msgspec.structs.replace(given, before=before))
    assert found.verdict.state is State.UNKNOWN
    assert "cannot be told" in found.verdict.summary


def test_two_recordings_are_compared_as_far_as_they_are_equal() -> None:
    pairs = []
    for n in range(4):
        ours = Answer(key=str(n), prompt_ids=PROMPT, ids=(10,) * 12 + (11,), logprobs=(-1.0,) * 13)
        theirs = Answer(key=str(n), prompt_ids=PROMPT, ids=(10,) * 12 + (12,), logprobs=(-1.4,) * 13)
        pairs.append(Pair(engine=ours, reference=theirs, prompt_ids=PROMPT))
    found = compare(Trial(pairs=tuple(pairs), pieces=PIECES, temperature=0.0))
    assert found.distance is not None
    assert (found.distance.tokens, found.identical) == (48, 0)
    assert (found.partings[0].at, found.partings[0].engine, found.partings[0].reference) == (12, "'t11 ' (11)", "'t12 ' (12)")
    assert [(f.cause, f.certainty) for f in found.findings] == [(Cause.WEIGHTS, Certainty.POSSIBLE)], "rounding was not measured"


def test_too_little_is_unknown() -> None:
    assert compare(trial(answers=1, length=5)).verdict.state is State.UNKNOWN
    failed = Trial(pairs=(Pair(engine=Answer(key="a", error="APITimeoutError: timed out")),), temperature=0.0)
    found = compare(failed)
    assert (found.verdict.state, found.answers) == (State.UNKNOWN, 0)
    assert found.missing == (Missing(what="1 answers of the engine", reason="APITimeoutError: timed out"),)
    text = Pair(engine=Answer(key="a", text="x"), reference=Answer(key="a", text="x"))
    assert compare(Trial(pairs=(text,), temperature=0.0)).verdict.certainty is Certainty.POSSIBLE


def test_text_from_outside_cannot_steer_a_terminal_or_a_page() -> None:
    evil = "\x1b[2J<script>alert(1)</script>"
    given = changed(trial(shift=0.3), prompt_text=evil)
    given = msgspec.structs.replace(given, pieces={**PIECES, **dict.fromkeys(range(10, 60), evil)}, engine_name=evil)
    found = compare(given)
    assert "\x1b" not in "".join(render(found, colour=False, verbose=True))
    html = page.render(given, found)
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "\x1b" not in html


def test_the_page_colours_tokens_by_their_difference() -> None:
    given = trial(shift=0.5)
    html = page.render(given, compare(given))
    assert sum(html.count(f'class="t h{n}"') for n in range(5)) == 6 * 20 + 5, "all tokens and the legend"
    assert html.count('class="t h4"') > 6


def test_every_rule_has_its_four_heads() -> None:
    from ray_rl_debug.rollouts.checks import CHECKS

    for rule in (*RULES, *CHECKS):
        assert rule.__doc__.startswith(f"{rule.ID} {rule.NAME}\n"), rule.__name__
        for head in ("Story", "Evidence", "Remedy", "Not this when"):
            assert f"\n{head}\n" in rule.__doc__, (rule.ID, head)
    assert all(isinstance(f, Found) for f in compare(trial(shift=0.3)).findings)


def recorded(ours: dict[str, object], theirs: dict[str, object], answers: int = 6) -> Trial:
    """Two greedy recordings of the same prompts, with these fields in each answer of a side."""
    plain = tuple(range(10, 30))
    pairs = []
    for n in range(answers):
        fields = {"key": f"q{n}", "prompt_ids": (*PROMPT, n), "ids": plain, "logprobs": (-0.5,) * 20, "finish": "stop"}
        one, other = Answer(**(fields | ours)), Answer(**(fields | theirs))  # type: ignore[arg-type]
        pairs.append(Pair(engine=one, reference=other, prompt_ids=other.prompt_ids))
    return Trial(pairs=tuple(pairs), pieces=PIECES, temperature=0.0)


def test_a_token_with_two_spellings_on_each_side_is_no_other_tokenizer() -> None:
    two = {"ids": (10,) * 20, "pieces": ("one ", "alpha ") * 10}
    assert compare(recorded(two, two)).verdict.state is State.AGREE
    assert told(compare(recorded(two, {"ids": (10,) * 20, "pieces": ("beta ",) * 20}))) == [Cause.TOKENIZER]


def test_greedy_recordings_with_equal_numbers_and_another_end_do_not_agree() -> None:
    longer = {"ids": (*range(10, 29), 3, 40, 41), "logprobs": (-0.5,) * 22, "finish": "length"}
    found = compare(recorded({}, longer))
    assert found.verdict.state is State.DIFFER
    assert "6 of 6 greedy answers part: in 6 of them one side ends where the other goes on" in found.verdict.summary


def test_greedy_recordings_with_equal_numbers_and_other_tokens_do_not_agree() -> None:
    other = {"ids": (*range(10, 22), *range(40, 48))}
    found = compare(recorded({}, other))
    assert found.verdict.state is State.DIFFER
    assert "one side did not take the best token" in found.verdict.summary


def test_answers_that_are_cut_agree_as_far_as_they_go() -> None:
    short = {"ids": tuple(range(10, 18)), "logprobs": (-0.5,) * 8, "finish": "length"}
    found = compare(recorded({}, short))
    assert found.verdict.state is State.AGREE
    assert "6 answers are cut at the longest length of one side" in found.verdict.summary


def test_rows_in_another_order_are_no_other_template() -> None:
    given = recorded({}, {})
    turned = [*given.pairs[1:], given.pairs[0]]
    pairs = tuple(msgspec.structs.replace(p, reference=q.reference, prompt_ids=q.prompt_ids) for p, q in zip(given.pairs, turned, strict=True))
    found = compare(msgspec.structs.replace(given, pairs=pairs))
    assert "the rows are in another order: 6 of 6 prompts" in found.verdict.summary
    assert "prompt q0 of the engine is prompt q5 there" in found.verdict.summary


def test_rows_that_were_not_used_are_told(tmp_path: Path) -> None:
    rows = [Head(name="m", temperature=0.0), *(Answer(key=str(n), ids=(10,), logprobs=(-0.5,)) for n in (0, 1, 2, 3, 1))]
    files = (tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    files[0].write_bytes(b"".join(encode(r) + b"\n" for r in rows[:3]))
    files[1].write_bytes(b"".join(encode(r) + b"\n" for r in rows) + b'{"key":"9","id')
    _, found = run(Asked(files=files), lambda _: None)
    told_rows = [f"{m.what}: {m.reason}" for m in found.missing]
    assert "2 more answers of the reference: the engine has no answer with the same prompt and sample" in told_rows
    assert "rows of b.jsonl: prompt and sample come again 1 times; the last answer of each was used" in told_rows
    assert "rows of b.jsonl: the last line is cut off" in told_rows


@pytest.mark.parametrize(("more", "hint"), [(["-o", "kept"], "the answers are kept in kept: the same command"), ([], "answers are kept with -o DIR")])
def test_what_is_kept_after_an_interruption_is_said(
    more: list[str], hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(comparing, "run", interrupted)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prompts.jsonl").write_text("{}\n")
    assert main(["rollout", "compare", "prompts.jsonl", *more]) == 130
    assert capsys.readouterr().err.startswith(f"error: interrupted\nhint:  {hint}")
