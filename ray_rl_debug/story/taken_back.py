"""An excuse that the end of the same process takes back: an error was only noted, and soon the process that noted it had ended.

Whoever writes an error down at level *info* says nothing of what comes of it, and steps that others count say nothing of this process. So where the
next that is known of the process is its end, which tells no reason, the error was not survived.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from ray_rl_debug.logs.ends import gives_up
from ray_rl_debug.logs.words import EXCEPTION
from ray_rl_debug.model.snapshot.log_book import LogWriter
from ray_rl_debug.story.candidates import NOTED, WENT_ON, Candidate, Class
from ray_rl_debug.story.people import is_same

WITHIN_S = 60.0
WITHIN_LINES = 60
"""In one file, where no times are told."""


def taken_back(found: Sequence[Candidate]) -> list[Candidate]:
    """All of them; whose excuse does not hold has none."""
    ends: defaultdict[object, list[Candidate]] = defaultdict(list)
    for one in found:
        if one.survived is None and _is_end(one):
            for key in _keys(one):
                ends[key].append(one)
    return [msgspec.structs.replace(c, survived=None) if _is_open(c) and _has_ended(c, ends) else c for c in found]


def _keys(one: Candidate) -> tuple[object, ...]:
    """Who names one process shares one of them."""
    who = one.subject
    named = tuple((kind, name) for kind, name in (("pid", who.pid), ("rank", who.rank)) if name is not None)
    return named or (("file", one.book.file),)


def _has_ended(one: Candidate, ends: Mapping[object, Sequence[Candidate]]) -> bool:
    return any(_ended_by(one, end) for key in _keys(one) for end in ends.get(key, ()))


def _is_end(one: Candidate) -> bool:
    """Only one that tells no reason of its own."""
    return one.class_ is Class.LATE or (one.class_ is Class.OWN and gives_up(one.event.text))


def _is_open(one: Candidate) -> bool:
    """Is its excuse only the level of the line, or work of whomever?"""
    return one.survived is not None and one.class_ is Class.OWN and one.survived.startswith((NOTED, WENT_ON)) and _is_error(one)


def _ended_by(one: Candidate, end: Candidate) -> bool:
    is_one_file = one.book is end.book
    if not is_same(one.subject, end.subject) or (one.subject == LogWriter() and not is_one_file):
        return False
    return _is_soon(one, end, is_one_file) and not _worked_on(one, end)


def _is_error(one: Candidate) -> bool:
    is_known = one.signature is not None and one.signature.effect == "critical"
    return is_known or one.event.kind == "traceback" or EXCEPTION.match(one.event.text) is not None


def _is_soon(one: Candidate, end: Candidate, is_one_file: bool) -> bool:
    if is_one_file and not one.event.file_line < end.event.file_line:
        return False
    if one.time_s is not None and end.time_s is not None:
        return 0.0 <= end.time_s - one.time_s <= WITHIN_S
    return is_one_file and end.event.file_line - one.event.file_line <= WITHIN_LINES


def _worked_on(one: Candidate, end: Candidate) -> bool:
    """Did the process count work behind the error?"""
    own = [s for s in one.book.steps if s.file_line > one.event.file_line and is_same(s.writer, one.event.writer)]
    return any(one.book is not end.book or s.file_line < end.event.file_line for s in own)
