"""RRD222 the tokenizers differ

Story
    Engine and reference cut the same plain text into different tokens, or spell the same token differently. All log-probabilities and masks then
    belong to other tokens than the trainer thinks.

Evidence
    The first piece of plain text that is cut differently, or the token id that has another text on the other side.

Remedy
    Load both sides from the same tokenizer files; compare tokenizer.json of both folders, and added tokens.

Not this when
    Only the special tokens around the messages differ: then it is the chat template.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.alignment import first_difference, spell
from ray_rl_debug.rollouts.answers import Answer, Cause, Found, Probe
from ray_rl_debug.rollouts.view import View

ID = "RRD222"
NAME = "the tokenizers differ"
CAUSE = Cause.TOKENIZER
REMEDY = (
    "load both sides from the same tokenizer files: vllm serve --tokenizer DIR, sglang --tokenizer-path DIR",
    "compare tokenizer.json and added_tokens of the two folders: cmp ENGINE/tokenizer.json REFERENCE/tokenizer.json",
)


def detect(view: View) -> Iterator[Found]:
    """Plain text that is cut differently; tokens that are spelled differently."""
    probes = view.trial.probes
    apart = [p for p in probes if p.engine_ids != p.reference_ids]
    if apart:
        yield Found(
            id=ID,
            name=NAME,
            cause=CAUSE,
            certainty=Certainty.PROVEN,
            summary=f"the tokenizers differ: {_first_cut(apart[0], view)}",
            evidence=(f"{len(apart)} of {len(probes)} plain texts are cut differently", *(_rows(p) for p in apart[:2])),
            remedy=REMEDY,
        )
        return
    misspelled = _misspelled(view)
    if misspelled:
        token, ours, theirs = misspelled[0]
        yield Found(
            id=ID,
            name=NAME,
            cause=CAUSE,
            certainty=Certainty.LIKELY,
            summary=f"the tokenizers differ: token {token} is {ours!r} to the engine and {theirs!r} to the reference",
            evidence=tuple(f"token {t}: engine {a!r}, reference {b!r}" for t, a, b in misspelled[:6]),
            remedy=REMEDY,
        )


def _first_cut(probe: Probe, view: View) -> str:
    at = first_difference(probe.engine_ids, probe.reference_ids)
    assert at is not None
    ours = _tell(probe.engine_ids, probe.engine_pieces, at, view)
    theirs = _tell(probe.reference_ids, probe.reference_pieces, at, view)
    return f"in {_short(probe.text)} token {at + 1} is {ours} to the engine and {theirs} to the reference"


def _tell(ids: tuple[int, ...], pieces: tuple[str, ...] | None, at: int, view: View) -> str:
    if at >= len(ids):
        return "nothing"
    return f"{pieces[at]!r} ({ids[at]})" if pieces is not None and at < len(pieces) else spell(ids[at], view.trial.pieces if pieces else {})


def _rows(probe: Probe) -> str:
    return f"{_short(probe.text)}: engine {list(probe.engine_ids[:16])}, reference {list(probe.reference_ids[:16])}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")


def _misspelled(view: View) -> list[tuple[int, str, str]]:
    """Tokens of the engine's answers that the reference never spells as the engine does.

    White space around a single token says nothing (some tokenizers drop it), nor does an empty text (special tokens that are hidden), nor letters
    beyond ASCII: a token may be a piece of one, which each program spells in its own way. One side may spell a token in several ways.
    """
    ours = _spellings(p.engine for p in view.trial.pairs)
    theirs = _spellings(p.reference for p in view.trial.pairs if p.reference is not None)
    found = []
    for token, texts in ours.items():
        others = theirs.get(token) or ({view.trial.pieces[token]: None} if token in view.trial.pieces else {})
        plain = {t.strip() for t in texts} & {t.strip() for t in others}
        if others and not plain and all(t.strip() and t.isascii() for t in (*texts, *others)):
            found.append((token, next(iter(texts)), next(iter(others))))
    return found


def _spellings(answers: Iterable[Answer]) -> dict[int, dict[str, None]]:
    """For each token its texts, in the order in which they come."""
    found: dict[int, dict[str, None]] = {}
    for answer in answers:
        ids, pieces = answer.ids, answer.pieces
        if ids is not None and pieces is not None and len(ids) == len(pieces):
            for token, text in zip(ids, pieces, strict=True):
                found.setdefault(token, {})[text] = None
    return found
