"""Places of code that a sentence names: ``stuck in `all_reduce` (`distributed_c10d.py:2810`) from `step` ``."""

from __future__ import annotations

import re

from ray_rl_debug.formats.dump import CodePlace
from ray_rl_debug.formats.pasted import joined
from ray_rl_debug.formats.pasted.frames import read_frame
from ray_rl_debug.formats.pasted.prose_words import DOUBT, IS_SPOKEN, SPOKEN_CALLS, SPOKEN_WORK

_LINKED = 16
"""Characters between two names of one place."""
CODE = re.compile(
    r"`(?P<quoted>[^`\n]{2,240})`"
    r"|(?P<place>(?<![\w/.-])[\w./-]{0,120}\w\.(?:pyx?|cc?|cpp|cu|rs|h):\d{1,7}\b)"
    r"|(?P<call>(?<![\w.:])\.?(?:[A-Za-z_]\w{0,60}(?:\.|::)){0,6}[A-Za-z_]\w{1,80}\(\))"
    r"|(?P<dotted>(?<![\w.:/-])(?:torch|dist)(?:\.[A-Za-z_]\w{0,60}){1,5}\b(?!\())"
    r"|(?P<bare>(?<![\w.:/-])(?:[A-Za-z]\w{0,60}(?:\.|::)){0,5}[A-Za-z]\w{0,60}_\w{1,60}(?![\w/-]|\.\w))"
    r"|(?P<spoken>(?i:" + IS_SPOKEN + "))"
)
_CALLS, _WORK = (tuple((re.compile(told, re.IGNORECASE), name) for told, name in spoken) for spoken in (SPOKEN_CALLS, SPOKEN_WORK))
_NAME = re.compile(
    r"(?!(?=[a-f]{0,39}\d)[0-9a-f]{7,40}$)(?P<name>\.?(?:[A-Za-z_]\w{0,80}(?:\.|::)){0,8}[A-Za-z_~]\w{0,100})(?:<[^<>]{0,100}>)?(?:\([^()]{0,120}\))?$"
)
_LINE_BEHIND = re.compile(r"(?<=\w):\d{1,7}$")
_PLACE = re.compile(r"(?P<file>[\w./-]{1,200}\.(?:pyx?|cc?|cpp|cu|rs|h))(?::(?P<line>\d{1,7}))?$")
_BESIDE = re.compile(r"^[`*\s]{0,3}(?:\(|at|in|@|,|—|-|line|of)?[`*\s(]{0,4}$")
_OUTWARD = re.compile(r"\b(?:from|via|called (?:by|from)|under|below|inside|within|in|of|by)\b|←|<-|^[)\s]{1,3}<\s$", re.IGNORECASE)
_INWARD = re.compile(r"→|->|=>|⟶|▸")
_CALLED_BY = re.compile(r"\bcalled (?:by|from)\b", re.IGNORECASE)
"""``f -> called by g``: whichever way the arrow points."""
_ASIDE = re.compile(r"\s(?:\w{2,20}\s)?\($")
"""*inside the `Store()` constructor (`create_store`, ...)*: in brackets behind a place is what it lies in."""
_CHOICE = re.compile(r"^\s?/\s?$|\bor\b")
_MOST_FRAMES = 24
_LEAST_OF_CHAIN = 3
"""Names in a chain that a tool shows, as a stack and no more is written."""


def is_chain(quoted: str | None) -> bool:
    """Is it a whole chain of calls? A single name may be shown for many reasons."""
    return quoted is not None and (joined.names(quoted, least=_LEAST_OF_CHAIN, code=2) is not None or _is_placed(quoted))


def _is_placed(quoted: str) -> bool:
    """``f (a.py:1) < g (b.py:2)``"""
    found = joined.read(quoted, is_named=True)
    return found is not None and sum(1 for _, file, _ in found.places if file) > 1


def last_code(text: str) -> str:
    """The last names of code in a text, with those in which they stand: *`all_reduce` in `step`*."""
    codes = list(CODE.finditer(text))
    at = len(codes) - 1
    while at > 0 and len(between := text[codes[at - 1].end() : codes[at].start()]) < _LINKED and _OUTWARD.search(between):
        at -= 1
    return text[codes[at].start() :] if codes else ""


def read(text: str) -> list[CodePlace]:
    """The frames that a part of a sentence names, innermost first."""
    return _read(text, with_work=False) or _read(text, with_work=True)


def _read(text: str, *, with_work: bool) -> list[CodePlace]:
    found: list[CodePlace] = []
    end, inward = 0, False
    for code in CODE.finditer(text):
        between, told = (
            text[end : code.start()],
            code["quoted"] or code["place"] or code["call"] or code["dotted"] or code["bare"] or _spoken(code["spoken"], with_work=with_work),
        )
        if not told:
            continue
        if found and (re.search(r"[.;]\s|,\s+and\b|\bthat\b|\bwhich\b|\bthey\b|\bit\b", between) or len(between) > 80 or DOUBT.search(between)):
            break
        end = code.end()
        place = _PLACE.match(told)
        if place is not None:
            line = int(place["line"]) if place["line"] else 0
            if found and not found[-1][1] and _BESIDE.match(between):
                found[-1] = (found[-1][0], place["file"], line)
            elif not found and (behind := _function_behind(text[end:])) is not None:
                found.append((behind, place["file"], line))
            continue
        if not found and code["quoted"] and (chain := (joined.read(told, is_named=True) if _is_placed(told) else joined.names(told))) is not None:
            return list(chain.places) if chain.order == "inner" else list(reversed(chain.places))
        if found and told.startswith("."):
            continue  # a part of what is told of the place
        whole = read_frame(told) if " " in told or ":" in told else None
        name = _NAME.match(_LINE_BEHIND.sub("", told.strip()))
        if whole is not None and not whole.is_whole:
            new = list(whole.places)
        elif name is not None and (code["quoted"] is None or len(name["name"]) > 2):
            new = [(name["name"], "", 0)]
        else:
            continue
        if not found:
            found = new
        elif found[-1][0] == new[0][0] or _CHOICE.search(between):
            continue
        elif _ASIDE.match(between):
            found = [*found, *new]
        elif re.match(r"['’]s\s|`? ?的 ?", between):
            found = [*new, *found]
        elif _INWARD.search(between) and not _CALLED_BY.search(between):
            inward = True
            found = [*found, *new]
        elif _OUTWARD.search(between):
            found = [*found, *new]
        if len(found) >= _MOST_FRAMES:
            break
    return found[::-1] if inward else found


def _spoken(told: str | None, *, with_work: bool) -> str:
    return next((name for pattern, name in _CALLS + (_WORK if with_work else ()) if told and pattern.fullmatch(told.strip())), "")


def _function_behind(text: str) -> str | None:
    """``instance.c:576` in init_common()``: the function of a place that stands before it."""
    found = re.match(r"[`*\s]{0,3}(?:in|,|\()?[`*\s(]{0,4}(?P<name>(?:\w{1,60}(?:\.|::)){0,4}\w{2,80})(?:\(\))?(?=[`*\s,.;)]|$)", text)
    return found["name"] if found is not None and ("_" in found["name"] or found[0].rstrip("`").endswith("()")) else None
