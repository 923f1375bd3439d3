"""A comparison of rollouts as one self-contained page: every token of every answer, coloured by how differently the two sides see it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from ray_rl_debug.render.html.text import esc
from ray_rl_debug.render.rollout_text import table
from ray_rl_debug.rollouts.alignment import first_difference
from ray_rl_debug.rollouts.answers import Answer, Found, Pair, Trial
from ray_rl_debug.rollouts.compare import Comparison
from ray_rl_debug.rollouts.differences import Place
from ray_rl_debug.rollouts.view import build

HEAT = (0.005, 0.01, 0.05, 0.2)
"""Differences of probability at which a token's colour becomes stronger: the two limits of verl's FAQ, then clearly more."""
MAX_ANSWERS = 200
MAX_TOKENS = 4000
"""Of one answer; the page stays one that a browser opens at once."""
_CLASSES = {"agree": "is-healthy", "differ": "is-hang", "unknown": "is-unknown"}


def render(trial: Trial, found: Comparison) -> str:
    """One HTML document without scripts."""
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    verdict = found.verdict
    sure = "" if verdict.state.value == "unknown" else f"<span class=sure>{verdict.certainty.value}</span>"
    findings = "".join(_finding(f) for f in found.findings) or "<p class=none>No difference was found.</p>"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{digest}'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f"<title>{verdict.state.value.upper()}: rollouts compared</title><style>{style}</style></head>"
        f'<body class="{_CLASSES[verdict.state.value]}"><header><p class=state><span class=word>{verdict.state.value.upper()}</span>{sure}</p>'
        f"<h1>{esc(verdict.summary)}</h1><p class=meta>{esc(found.engine)} against {esc(found.reference)}</p></header>"
        f"<main><section><h2>Why</h2>{findings}</section><section><h2>How far apart</h2>{_numbers(found)}</section>"
        f"<section><h2>Every token</h2>{_legend()}{''.join(_answers(trial))}</section>{_missing(found)}</main></body></html>\n"
    )


@cache
def _style() -> str:
    folder = files("ray_rl_debug.render.html")
    return folder.joinpath("style.css").read_text("utf-8") + folder.joinpath("rollouts.css").read_text("utf-8")


def _finding(found: Found) -> str:
    evidence = "".join(f"<li>{esc(e)}" for e in found.evidence)
    remedy = "".join(f"<li>{esc(r)}" for r in found.remedy)
    trouble = "" if found.is_trouble else "<span class=chip>no trouble</span>"
    return (
        f"<article class=finding><h3>{esc(found.id)} {esc(found.name)} <span class=chip>{found.cause.value}</span>"
        f"<span class=chip>{found.certainty.value}</span>{trouble}</h3><p class=summary>{esc(found.summary)}</p>"
        + (f"<h4>Evidence</h4><ul>{evidence}</ul>" if evidence else "")
        + (f"<h4>What to do</h4><ul>{remedy}</ul>" if remedy else "")
        + "</article>"
    )


def _numbers(found: Comparison) -> str:
    rows = "".join(f"<tr><th scope=row>{esc(name.strip())}</th><td>{esc(value)}</td><td>{esc(note)}</td></tr>" for name, value, note in table(found))
    return f"<table class=numbers>{rows}</table>"


def _legend() -> str:
    names = ("below 0.005", "0.005", "0.01", "0.05", "0.2 and more")
    cells = "".join(f'<span class="t h{n}">{name}</span> ' for n, name in enumerate(names))
    return (
        f"<p class=note>Difference of the token's probability in engine and reference: {cells}"
        '<span class="t unknown">not known</span>. <span class="t parts">Framed</span>: the answers part here. Point at a token for its numbers.</p>'
    )


def _answers(trial: Trial) -> Iterator[str]:
    by_pair: dict[int, dict[int, Place]] = {}
    for place in build(trial).places:
        by_pair.setdefault(place.pair, {})[place.at] = place
    for number, pair in enumerate(trial.pairs[:MAX_ANSWERS]):
        yield _answer(pair, by_pair.get(number, {}), trial)
    if len(trial.pairs) > MAX_ANSWERS:
        yield f"<p class=none>{len(trial.pairs) - MAX_ANSWERS} more answers are in engine.jsonl.</p>"


def _answer(pair: Pair, places: dict[int, Place], trial: Trial) -> str:
    engine, other = pair.engine, pair.reference
    head = f"<h3>prompt {esc(engine.key)}" + (f", answer {engine.sample + 1}" if engine.sample else "") + "</h3>"
    if engine.error is not None:
        return f"<article class=answer>{head}<p class=none>No answer: {esc(engine.error)}</p></article>"
    parts = first_difference(engine.ids or (), other.ids or ()) if other is not None and engine.ids and other.ids and not trial.temperature else None
    prompts = _prompts(pair)
    ours = f"<h4>engine</h4><p class=tokens>{''.join(_token(t, n, places.get(n), n == parts) for n, t in _texts(engine, trial))}{_end(engine)}</p>"
    theirs = ""
    if other is not None and parts is not None:
        rest = "".join(_token(t, n, None, n == parts, is_plain=True) for n, t in _texts(other, trial))
        theirs = f"<h4>reference</h4><p class=tokens>{rest}{_end(other)}</p>"
    return f"<article class=answer>{head}{prompts}{ours}{theirs}</article>"


def _prompts(pair: Pair) -> str:
    ours, theirs = pair.engine.prompt_text, pair.prompt_text
    if ours is None and theirs is None:
        return ""
    if ours == theirs or ours is None or theirs is None:
        return f"<p class=prompt>{esc(ours or theirs)}</p>"
    return f"<p class=prompt><b>engine</b> {esc(ours)}</p><p class=prompt><b>reference</b> {esc(theirs)}</p>"


def _texts(answer: Answer, trial: Trial) -> Iterator[tuple[int, str]]:
    row: Sequence[str] = answer.pieces or ()
    if answer.ids is not None:
        row = [trial.pieces.get(t, f"<{t}>") for t in answer.ids]
    yield from enumerate(row[:MAX_TOKENS])


def _token(text: str, at: int, place: Place | None, is_parting: bool, *, is_plain: bool = False) -> str:
    kind = "plain" if is_plain else "unknown" if place is None else f"h{sum(place.probability_gap >= limit for limit in HEAT)}"
    told = f"token {at + 1}"
    if place is not None:
        told += f" ({place.token}): engine {place.engine:.4f}, reference {place.reference:.4f} nats, probability {place.probability_gap:.4f} apart"
    shown = text.replace("\n", "⏎") or "∅"
    return f'<span class="t {kind}{" parts" if is_parting else ""}" title="{esc(told)}">{esc(shown)}</span>' + ("<br>" if "\n" in text else "")


def _end(answer: Answer) -> str:
    return f" <i>{esc(answer.finish or 'end not told')}</i>"


def _missing(found: Comparison) -> str:
    if not found.missing:
        return ""
    return "<section><h2>What was not seen</h2><ul>" + "".join(f"<li>{esc(m.what)}: {esc(m.reason)}" for m in found.missing) + "</ul></section>"
