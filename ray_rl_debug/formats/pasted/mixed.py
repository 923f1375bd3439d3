"""Tracebacks that several processes wrote at once, as at Ctrl-C: their lines stand mixed. Each is put together again.

Every process wrote its own lines in order, and a line of source code calls the function of the next frame. Of all ways to give the lines to
the tracebacks the one is taken in which most frames are called by the line of code above them.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ray_rl_debug.formats.pasted.mixed_in_step import in_step

_HEAD = re.compile(r"[ >]{0,8}(?:\^C)?Traceback \(most recent call last\):\s{0,8}$")
_FRAME = re.compile(r"[ >]{0,8}File \"(?P<file>[^\"]{1,400})\", line (?P<line>\d{1,7}), in (?P<name>[\w.<>]{1,120})\s{0,200}$")
_CODE = re.compile(r" {4,12}(?=\S)")
_MARKS = re.compile(r"[ ~^]{4,400}$")
_CHILD = re.compile(r"Process [\w-]{1,80}(?::\d{1,5}){0,4}:\s{0,8}$")
_END = re.compile(r"(?:\^C)?[A-Za-z_][\w.]{0,120}(?:: .{0,400})?\s{0,200}$")
MAX_LINES = 400
MOST = 8
"""Tracebacks that are told apart."""
_WIDTH = 24
"""Ways that are followed at once."""
_BY_SYNTAX = (
    (re.compile(r"__(?:next|iter|aiter|anext)__|<(?:listcomp|genexpr|setcomp|dictcomp)>"), re.compile(r"\bfor\b|\bnext\(|\biter\(|\*")),
    (re.compile(r"__(?:enter|exit|aenter|aexit)__"), re.compile(r"\bwith\b|\b_?enter\w*\(")),
    (re.compile(r"__(?:getitem|setitem|getattr|len|del|init|call|new)__|_(?:wrapped_)?call_impl|wrapper|inner|decorate_context|_fn|<lambda>"),
     re.compile(r"[(\[.]")),
)  # fmt: skip
"""Names that the line above does not write, of methods behind syntax and of decorators, and what that line holds."""
_ANYTHING = re.compile(r"\*args\b|\*\*kwargs\b|\b(?:func|fn|f|target|callback|forward_func|_target)\(")
"""A line that calls whatever it was given."""

_Lines = list[tuple[int, str]]


class _Frame(msgspec.Struct, frozen=True):
    name: str
    place: tuple[str, str]
    code: str | None = None


class _Way(msgspec.Struct, frozen=True):
    """One way to give the first lines to the tracebacks."""

    tops: tuple[_Frame | None, ...]
    """The last frame of each; None where none has come."""
    ended: tuple[bool, ...]
    given: tuple[int, ...] = ()
    """To which one each line went."""
    codes: dict[tuple[str, str], str] = {}
    """The source of a line of a file: one place has one."""
    score: float = 0.0
    called: int = 0


def apart(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines, with tracebacks that stand mixed one after the other."""
    held: _Lines = []
    heads = ends = 0
    for number, raw in lines:
        is_head = "Traceback" in raw and _HEAD.match(raw) is not None
        is_child = raw.startswith("Process ") and _CHILD.match(raw) is not None
        if not held and not is_head and not is_child:
            yield number, raw
            continue
        if is_head or is_child or (heads and _is_of_traceback(raw) and len(held) < MAX_LINES):
            held.append((number, raw))
            heads += is_head
            continue
        is_end = heads > 0 and _END.match(raw) is not None
        if is_end:
            held.append((number, raw))
            ends += 1
            if ends < heads:
                continue
        yield from _told_apart(held) if heads > 1 else held
        held, heads, ends = [], 0, 0
        if not is_end:
            yield number, raw
    yield from _told_apart(held) if heads > 1 else held


def _is_of_traceback(raw: str) -> bool:
    return _FRAME.match(raw) is not None or _CODE.match(raw) is not None or _CHILD.match(raw) is not None


def _told_apart(held: _Lines) -> _Lines:
    """The tracebacks one after the other; the lines as they were where they are not mixed, or cannot be told apart."""
    heads = [raw for _, raw in held if _HEAD.match(raw)]
    names = [raw for _, raw in held if _CHILD.match(raw)]
    told = [raw for _, raw in held if not _HEAD.match(raw) and not _CHILD.match(raw) and not _MARKS.match(raw)]
    if len(heads) > MOST or len(held) > MAX_LINES or not _is_mixed([raw for _, raw in held]):
        return held
    way = _best(told, len(heads))
    frames = sum(_FRAME.match(raw) is not None for raw in told)
    if way is None or 2 * way.called < frames - len(heads) or way.called <= _called_as_it_stands(held):
        given = in_step(told, len(heads))
    else:
        given = way.given
    if given is None:
        return held
    above = [[name] for name in names] if len(names) == len(heads) else [[] for _ in heads]
    each = [[*above[i], head, *(raw for raw, to in zip(told, given, strict=True) if to == i)] for i, head in enumerate(heads)]
    return list(zip((number for number, _ in held), itertools.chain.from_iterable(each), strict=False))


def _called_as_it_stands(held: _Lines) -> int:
    """How many frames the line above calls, where each traceback ends before the next begins."""
    called, code = 0, ""
    for _, raw in held:
        frame = _FRAME.match(raw)
        called += frame is not None and bool(code) and _calls(code, frame["name"])
        code = "" if frame is not None or _HEAD.match(raw) else raw if _CODE.match(raw) and not _MARKS.match(raw) else code
    return called


def _calls(code: str, name: str) -> bool:
    return _writes(code, name) or _ANYTHING.search(code) is not None or any(n.fullmatch(name) and c.search(code) for n, c in _BY_SYNTAX)


def _writes(code: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name.rsplit('.', 1)[-1])}\b", code) is not None


def _is_mixed(rows: Sequence[str]) -> bool:
    """Does a traceback begin before the one above has ended?"""
    is_open = False
    for raw in rows:
        if _HEAD.match(raw):
            if is_open:
                return True
            is_open = True
        elif not _is_of_traceback(raw):
            is_open = False
    return False


def _best(rows: Sequence[str], count: int) -> _Way | None:
    ways = [_Way(tops=(None,) * count, ended=(False,) * count)]
    for raw in rows:
        frame = _FRAME.match(raw)
        if frame is not None:
            new = _Frame(frame["name"], (frame["file"], frame["line"]))
            following = [_with_frame(way, i, new) for way in ways for i in _open(way)]
        elif _CODE.match(raw):
            following = [_with_code(way, i, raw.strip()) for way in ways for i in _open(way) if way.tops[i] is not None]
        else:
            following = [_with_end(way, i) for way in ways for i in _open(way) if way.tops[i] is not None]
        best: dict[object, _Way] = {}
        for way in following:
            key = frozenset(Counter(zip(way.tops, way.ended, strict=True)).items())
            if key not in best or best[key].score < way.score:
                best[key] = way
        ways = sorted(best.values(), key=lambda way: -way.score)[:_WIDTH]
    return ways[0] if ways else None


def _open(way: _Way) -> Iterator[int]:
    """The tracebacks that may go on; of several that stand at the same frame the first one is meant."""
    seen: set[_Frame | None] = set()
    for i, (top, ended) in enumerate(zip(way.tops, way.ended, strict=True)):
        if not ended and top not in seen:
            seen.add(top)
            yield i


def _with_frame(way: _Way, i: int, new: _Frame) -> _Way:
    top = way.tops[i]
    if top is None:
        gain, called = (2.0 if new.name == "<module>" or any(t is not None and t.place[0] == new.place[0] for t in way.tops) else 0.5), 0
    elif new.name == "<module>" and "importlib" not in top.place[0]:
        gain, called = -3.0, 0
    elif top.code is None:
        gain, called = (0.3 if top.place[0].startswith("<") else -1.5), 0  # only a file that is none has no source
    elif _calls(top.code, new.name):
        gain, called = (1.0 if not _writes(top.code, new.name) else 1.5 if _is_of_itself(top, new) else 2.0), 1
    else:
        gain, called = -0.5, 0
    return _given(way, i, new, gain, called)


def _is_of_itself(top: _Frame, new: _Frame) -> bool:
    """Does a file call a function of its own by the name of a module (``dist.all_reduce()``)? Few do."""
    is_of_module = re.search(rf"\b(?!self\b|cls\b)\w{{1,40}}\.{re.escape(new.name)}\(", top.code or "") is not None
    return is_of_module and top.place[0] == new.place[0]


def _with_code(way: _Way, i: int, code: str) -> _Way:
    top = way.tops[i]
    assert top is not None
    if top.code is not None:
        return _given(way, i, msgspec.structs.replace(top, code=f"{top.code} {code}"), -1.5, 0)
    waits = [_came(way, at) for at, one in enumerate(way.tops) if one is not None and one.code is None and not way.ended[at]]
    gain = 0.1 if _came(way, i) > min(waits) else 0.3  # of two frames the one that came first most likely has its source first
    known = way.codes.get(top.place)
    way = way if known is not None else msgspec.structs.replace(way, codes={**way.codes, top.place: code})
    return _given(way, i, msgspec.structs.replace(top, code=code), gain + (0.0 if known is None else 1.0 if known == code else -3.0), 0)


def _came(way: _Way, i: int) -> int:
    """Which of the lines so far was the last one of a traceback."""
    return max((at for at, to in enumerate(way.given) if to == i), default=-1)


def _with_end(way: _Way, i: int) -> _Way:
    top = way.tops[i]
    assert top is not None
    ended = tuple(one or at == i for at, one in enumerate(way.ended))
    return msgspec.structs.replace(_given(way, i, top, 0.2 if top.code is not None else -1.0, 0), ended=ended)


def _given(way: _Way, i: int, top: _Frame, gain: float, called: int) -> _Way:
    tops = (*way.tops[:i], top, *way.tops[i + 1 :])
    return msgspec.structs.replace(way, tops=tops, given=(*way.given, i), score=way.score + gain, called=way.called + called)
