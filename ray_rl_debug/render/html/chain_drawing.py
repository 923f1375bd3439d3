"""The chain of waits as a drawing: who waits for whom, down to the cause; a ring closes with an arrow back."""

from __future__ import annotations

import textwrap
import unicodedata
from collections import Counter
from collections.abc import Sequence

import msgspec

from ray_rl_debug.model.report import Certainty, Finding, Link, Who
from ray_rl_debug.render.html.book import Book
from ray_rl_debug.render.html.text import clip, count, esc, people, waiting
from ray_rl_debug.render.writer import neutralise

MAX_BOXES = 14
WIDTH = 336
"""CSS pixels: fits a phone at its own size, so that text never shrinks, and stands beside the cause on a desk."""

_LEFT, _PAD, _LINE = 34, 12, 19
_ALL = "wait for"


class _Box(msgspec.Struct, frozen=True):
    title: str
    below: tuple[str, ...]
    kind: str
    """``cause``, ``waiter``, ``more``."""
    word: str = "cause"
    link: str | None = None


class _Arrow(msgspec.Struct, frozen=True):
    why: str
    evidence: str
    certainty: Certainty


def draw(finding: Finding, book: Book) -> str:
    """The chain as an SVG; empty when nobody is known to wait."""
    boxes, arrows, ring = _steps(finding, book)
    if not arrows:
        return ""
    title = "who waits for whom: " + " → ".join(b.title for b in boxes)
    return _svg(boxes, arrows, ring, title)


def cause_word(finding: Finding) -> str:
    """A finding that is only possible accuses nobody."""
    return "suspect" if finding.certainty is Certainty.POSSIBLE else "cause"


def _steps(finding: Finding, book: Book) -> tuple[list[_Box], list[_Arrow], int | None]:
    """Boxes, the arrows between them, and the position a ring leads back to."""
    chain = finding.chain
    if not chain:
        if not finding.victims or not finding.who:
            return [], [], None
        victims = _Box(clip(people(finding.victims), 120), (waiting(len(finding.victims)),), "waiter")
        return [victims, _cause(finding, finding.who[0], book, ())], [_Arrow(_ALL, "", finding.certainty)], None
    stations = [chain[0].waiter, *(link.target for link in chain)]
    places = [_key(w) for w in stations]
    ring = places.index(places[-1]) if places[-1] in places[:-1] else None
    if ring is not None:
        stations = stations[:-1]
    peers = _peers(finding)
    boxes = []
    for position, who in enumerate(stations):
        accused = book.is_accused(who) or any(_key(who) == _key(w) for w in finding.who)
        last = position == len(stations) - 1
        boxes.append(_cause(finding, who, book, stations) if accused and (last or ring is not None) else _waiter(who, peers, book, accused))
    arrows = [_Arrow(link.why, link.evidence, link.certainty) for link in chain]
    if finding.who and not any(b.kind == "cause" for b in boxes):
        # What is no process (a network, a service outside) stands at no end of a measured wait.
        boxes.append(_cause(finding, finding.who[0], book, stations))
        arrows.append(_Arrow(finding.name, "", finding.certainty))
    if len(boxes) > MAX_BOXES and ring is None:
        boxes, arrows = _fold(boxes, arrows)
    return boxes, arrows, ring


def _fold(boxes: list[_Box], arrows: list[_Arrow]) -> tuple[list[_Box], list[_Arrow]]:
    half = MAX_BOXES // 2
    hidden = len(boxes) - 2 * half
    more = _Box(f"… {hidden} more in between", ("the list below holds all of them",), "more")
    return [*boxes[:half], more, *boxes[-half:]], [*arrows[:half], *arrows[-half:]]


def _cause(finding: Finding, who: Who, book: Book, drawn: Sequence[Who]) -> _Box:
    here = {_key(who), *(_key(w) for w in drawn)}
    others = [w for w in finding.who if _key(w) not in here]
    below = list(_below(who, book))
    if others:
        below.append(f"and {clip(people(others), 140)}")
    return _Box(who.label, tuple(below), "cause", cause_word(finding), book.anchor(who))


def _waiter(who: Who, peers: Counter[str | None], book: Book, accused: bool) -> _Box:
    below = list(_below(who, book))
    more = peers[who.world] - 1 if who.rank is not None and not accused else 0
    if more > 0:
        below.append(f"and {count(more, 'more rank')} of {clip(str(who.world), 40)}")
    return _Box(who.label, tuple(below), "cause" if accused else "waiter", link=book.anchor(who))


def _below(who: Who, book: Book) -> Sequence[str]:
    place = " · ".join(x for x in (who.node, f"pid {who.pid}" if who.pid is not None else None) if x)
    doing = book.doing(who)
    return [x for x in (place, clip(doing, 200) if doing else None) if x]


def _peers(finding: Finding) -> Counter[str | None]:
    return Counter(w.world for w in finding.victims if w.rank is not None)


def _key(who: Who) -> tuple[str | None, int | None, str]:
    return (who.node, who.pid, "") if who.pid is not None else (None, None, who.label)


def _wrap(text: str, room: float, *, lines: int) -> list[str]:
    """Lines of at most `room` narrow characters; wide characters count twice."""
    text = neutralise(text)
    wide = sum(1 for c in text if unicodedata.east_asian_width(c) in "WF")
    columns = max(8, int(room / (1 + wide / max(1, len(text)))))
    found = textwrap.wrap(text, columns, break_long_words=True, break_on_hyphens=False) or [""]
    if len(found) > lines:
        found = [*found[: lines - 1], clip(found[lines - 1], columns - 1) + "…"]
    return found


def _text(x: float, y: float, kind: str, text: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{esc(text)}</text>'


def _svg(boxes: Sequence[_Box], arrows: Sequence[_Arrow], ring: int | None, title: str) -> str:
    left = _LEFT if ring is not None else 2
    inner = WIDTH - left - 3
    y = 4.0
    parts: list[str] = []
    tops: list[float] = []
    bottoms: list[float] = []
    for position, box in enumerate(boxes):
        lines = [(kind, line) for kind, line in _box_lines(box, inner - 2 * _PAD)]
        height = len(lines) * _LINE + 16
        tops.append(y)
        bottoms.append(y + height)
        body = f'<rect x="{left}" y="{y:g}" width="{inner}" height="{height}" rx="8"/>'
        body += f'<rect class="bar" x="{left}" y="{y:g}" width="5" height="{height}" rx="2.5"/>'
        body += "".join(_text(left + _PAD + 4, y + 21 + i * _LINE, kind, line) for i, (kind, line) in enumerate(lines))
        group = f'<g class="box {box.kind}">{body}</g>'
        parts.append(f'<a href="#{box.link}">{group}</a>' if box.link else group)
        y += height
        if position < len(arrows):
            back = boxes[ring].title if ring is not None and position == len(boxes) - 1 else None
            y = _arrow(parts, arrows[position], left, y, inner, back=back)
    if ring is not None:
        low, high = bottoms[-1] - 14, tops[ring] + 14
        parts.append(f'<path class="wire back" d="M{left},{low:g} H14 V{high:g} H{left - 7}"/>')
        parts.append(f'<path class="tip" d="M{left - 1},{high:g} l-9,-5 v10 z"/>')
    size = f'width="{WIDTH}" height="{y + 4:g}" viewBox="0 0 {WIDTH} {y + 4:g}"'
    return f'<svg class=chain {size} role="group" aria-label="{esc(title)}">{"".join(parts)}</svg>'


def _box_lines(box: _Box, room: float) -> list[tuple[str, str]]:
    lines = [("title", line) for line in _wrap(box.title, room / 8.4, lines=2)]
    if box.kind == "cause":
        lines[0] = ("title", f"{lines[0][1]}   ← {box.word}") if len(lines[0][1]) < room / 8.4 - 10 else lines[0]
    for text in box.below:
        lines += [("sub", line) for line in _wrap(text, room / 7.1, lines=3)]
    return lines


def _arrow(parts: list[str], arrow: _Arrow, left: int, y: float, inner: int, *, back: str | None) -> float:
    """Draw the arrow under a box, or only its words where it leads `back` up the ring; the y where the next box begins."""
    room = (inner - 46) / 7.1
    is_sure = arrow.certainty is Certainty.PROVEN
    doubt = "" if is_sure else f" ({arrow.certainty.value})"
    words = f"waits: {arrow.why}" if arrow.why != _ALL else _ALL
    lines = [("why", line) for line in _wrap(words + doubt + (f", back to {back}" if back is not None else ""), room, lines=2)]
    lines += [("sub", line) for line in _wrap(arrow.evidence, room, lines=3)] if arrow.evidence else []
    height = len(lines) * _LINE + 14
    x = left + 20
    if back is None:
        parts.append(f'<path class="wire{"" if is_sure else " unsure"}" d="M{x},{y:g} V{y + height - 8:g}"/>')
        parts.append(f'<path class="tip" d="M{x},{y + height:g} l-5,-9 h10 z"/>')
    parts += [_text(x + 18, y + 19 + i * _LINE, kind, line) for i, (kind, line) in enumerate(lines)]
    return y + height


def as_list(chain: Sequence[Link]) -> str:
    """The same chain as text, every link with its evidence."""
    items = [
        f"<li>{esc(link.waiter.label, 160)} <b>{esc(link.why, 80)}</b> → {esc(link.target.label, 160)} "
        f"<i>{esc(link.evidence)}</i> ({link.certainty.value})</li>"
        for link in chain
    ]
    return f"<ol class=links>{''.join(items)}</ol>"
