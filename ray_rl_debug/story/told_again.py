"""One end that two tell has one outcome: a shell writes ``Killed``, and next its supervisor that it ended and was started again."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ray_rl_debug.model.snapshot.log_book import LogWriter
from ray_rl_debug.story.candidates import Candidate
from ray_rl_debug.story.people import is_same

WITHIN_LINES = 3


def told_again(found: Sequence[Candidate]) -> list[Candidate]:
    """All of them; an end that is told once more right behind it, as one that was survived, was survived."""
    passed = [c for c in found if c.survived is not None and c.event.kind == "death" and c.subject != LogWriter()]
    return [msgspec.structs.replace(c, survived=why) if (why := _why(c, passed)) is not None else c for c in found]


def _why(one: Candidate, passed: Sequence[Candidate]) -> str | None:
    if one.survived is not None or one.event.kind != "death" or one.signature is not None:
        return None
    line = one.event.file_line
    again = (c for c in passed if c.book is one.book and line < c.event.file_line <= line + WITHIN_LINES)
    return next((c.survived for c in again if is_same(c.subject, one.subject)), None)
