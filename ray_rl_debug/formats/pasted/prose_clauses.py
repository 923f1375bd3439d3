"""The parts of a sentence, one for each process of which it says where that one is.

``rank 1 hangs in `recv` because rank 0 sits in `dumps` ``, ``the trainer is in `save`, the vLLM worker in `collective_rpc` ``: a place belongs to
the subject before it. A new part begins at a name that is no object (*waits for rank 1*), that stands behind another one's place, and behind which
a place is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ray_rl_debug.formats.pasted import prose_places
from ray_rl_debug.formats.pasted.prose_words import CLAUSES, ENTERS, IS_SPOKEN, STANDS, WHO

_NEAR = 160
"""Characters behind a name in which its place begins."""
_OBJECT = re.compile(
    r"\b(?:for|of|from|to|by|than|except|until|after|before|on|like|as|behind|against|between|called|lets?|makes?|at|in|inside|other|and|or|,)\s"
    r"(?:the |all |its |their |any ){0,2}$",
    re.IGNORECASE,
)
_JOINS = re.compile(r"(?:,|\band|\bor)\s(?:the |all |its |their |any ){0,2}$", re.IGNORECASE)
"""Before a name that may be one more of several, or begin another part."""
_RELATIVE = re.compile(r"[`*\s]{0,3},? ?(?:which|that|who)\s(?:is|are|was|were|sits?|stands?|hangs?|waits?|never|still)\b", re.IGNORECASE)
"""*rank 0, which is still in ...*: what is told of an object."""
_AT_ONCE = re.compile(
    r"(?:['’]s?)?[`*)\s]{0,4}(?:\([^()`]{0,40}\)\s)?(?:(?:is|are|was|were|still|only|just|now|already|sitting|main thread) ){0,3}"
    r"(?:in|at|on|inside|within)\s[^`.;]{0,24}?(?=`|[\w.:]{1,60}\(\)|[a-z]\w{0,60}_\w|" + IS_SPOKEN + ")",
    re.IGNORECASE,
)
"""A place right behind a name, as where an earlier verb goes for it too."""
_SHOWN = re.compile(
    r"\b(?:shows?|showed|sees?|saw|found|finds?|caught|catch|catches|with|got"
    r"|(?:stuck|hung|blocked|hangs?):?|(?:left|leaves?|leaving))\s(?:that )?(?:the )?$",
    re.IGNORECASE,
)
"""Before a name of which is told where it was seen."""


_ARTICLE = re.compile(r"(?:\b(?:the|an?) )?$", re.IGNORECASE)


class Clause(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a sentence."""

    text: str
    is_short: bool = False
    """Does it lack a verb, and an earlier part has it?"""


def clauses(text: str) -> Iterator[Clause]:
    """The parts of a paragraph."""
    is_first = True
    for clause in CLAUSES.split(text):
        yield from _parts(clause, is_first=is_first)
        is_first = clause.rstrip("* ").endswith((".", "!", "?", ";"))


def _parts(clause: str, *, is_first: bool) -> Iterator[Clause]:
    begun, is_short = 0, not is_first and _begins_short(clause.lstrip("`* "))
    for who in WHO.finditer(clause):
        before, behind = clause[begun : who.start()], clause[who.end() : who.end() + _NEAR]
        if who["tool"] or clause.count("`", 0, who.start()) % 2:
            continue
        at_once = _AT_ONCE.match(behind) is not None
        if not begun and not is_short and at_once and _SHOWN.search(before):
            is_short = True  # "we see rank 0 in `barrier` and rank 1 in ..."
            continue
        if prose_places.CODE.search(before) is None or not (at_once or _stands(behind)) or _is_object(before, behind, at_once=at_once):
            continue
        article = _ARTICLE.search(before)
        start = who.start() - (len(article[0]) if article is not None else 0)
        yield Clause(text=clause[begun:start], is_short=is_short)
        begun, is_short = start, at_once
    yield Clause(text=clause[begun:], is_short=is_short)


def _stands(behind: str) -> bool:
    """Is a place said behind a name, and nothing quoted before it?"""
    code = prose_places.CODE.search(behind)
    if code is None:
        return False
    verb = ENTERS.match(behind) or _RELATIVE.match(behind) or STANDS.search(behind, 0, code.start() + 1)
    return verb is not None


def _is_object(before: str, behind: str, *, at_once: bool) -> bool:
    if _RELATIVE.match(behind):
        return False
    if _JOINS.search(before):
        return not at_once and STANDS.match(behind.lstrip(" `*")) is None and ENTERS.match(behind) is None
    return _OBJECT.search(before) is not None


def _begins_short(clause: str) -> bool:
    """Does a part that a word such as *and* has cut off begin with a name and its place?"""
    who = WHO.match(clause)
    return who is not None and _AT_ONCE.match(clause, who.end()) is not None
