"""What makes a failure doubtful that stands alone: words of its own line by which the run went on.

An error that ends a program is its last word. So whatever a line tells behind the error of what was done then, and whatever is remarked behind it in
brackets, is doubt enough not to accuse. It excuses nobody: beside a failure that shows an end such a line is told as any other.
"""

from __future__ import annotations

import re

from ray_rl_debug.logs.ends import GIVES_UP, OF_AN_END, gives_up
from ray_rl_debug.logs.words import EXCEPTION, HANDLED, MADE_ANEW, OF_ONE_REQUEST
from ray_rl_debug.model.snapshot.log_book import LogEvent
from ray_rl_debug.signatures import Signature

_OF_WHY = (
    r"(?:expect|miss|unable|cannot|not|no|never|see|check|pleas|possib|like|may|might|would|must|should|due|caus|because|consider|try|mak|set"
    r"|us(?:e|ing) |got |requir|need|invalid|unknown|unsupported)"
)
"""Beginnings of words by which a second clause gives a reason or advice."""
_PASSIVE = (
    r"(?!(?:error )?code|(?:\w+ )?information)(?:[\w'-]+ ){0,4}?(?:was|were|is|are|will be|has been|have been|gets?) (?:\w+ly )?"
    r"(?!(?:in|on|at|of|the|an?)\b)[a-z]{2,}\b"
)
_ING = r"(?!during|including|according|using)[a-z]{3,}ing\b(?! (?:is|was|error|fail))"
"""Two forms in which a clause tells what was done: ``slot was refilled``, ``halving to 32``."""
_BETWEEN = r"(?:[,;]|->|=>| - |\.(?= (?:The|It|They|A) (?:\w+ )?(?:was|were|has been|have been) )) ?(?:(?:The|It|They|A) )?"
"""Between an error and such a clause."""
_WENT_ON = re.compile(
    rf"{_BETWEEN}(?:(?:so|and|then|but|now|it|they|slot|which) )*(?!(?:\w+ ){{0,4}}(?:{OF_AN_END}|{_OF_WHY}))(?:{_PASSIVE}|{_ING})"
    r"|(?:[,;]| -|->) ?(?:(?:so|and|now) )*us(?:es|ing) (?:the |its |an? )?(?:\w+ )?"
    r"(?:cached|local|last|previous|old(?:er)?|default|stored|saved|earlier|offline|built-?in|bundled|stale|slower|fallback)\b"
    r"|\. (?:The|It|They|An?) (?:\w+ ){0,6}?(?:is|are) (?:\w+ )?(?:used|taken|kept|selected|chosen|read|loaded|skipped|masked|left out)"
    r"(?: instead)?\W*$"
    rf"|[,;] (?:[\w'-]+ ){{0,3}}{MADE_ANEW}(?: (?:by|with|from|in) [^,;]{{1,60}})?\W*$"
    r"|\b(?:dropped|skipped|discarded|left out|passed over)\W*$"
    r"|[,;] (?:[\w'-]+ ){0,3}(?:set|kept|left|counted|treated|marked|scored|filled) (?:to|as|out|with|at) [^,;]{1,60}$"
    r"|[,;] (?:(?:it|they|we|so|and) )*(?:will|shall) (?:\w+ )?"
    r"(?:try|run|sync|upload|push|ask|look|wait|be (?:done|sent|written|uploaded))\b[^,;]{0,60}$"
)
"""A second clause that tells what was done: ``, slot was refilled``, ``, halving to 32``, ``, using the cached copy``."""
_TAKEN_INSTEAD = re.compile(r"[.,;] (?!\w+ (?:should|must|can|may)\b)(?:[\w.'-]+ ){1,6}(?:is|are|will be) (?:used|taken)(?: instead)?\W*$")
"""How an exception's line ends where a program adds what it took: ``, the copy in the cache is used``, ``. torch.nn.LayerNorm will be used``."""
_REMARK = re.compile(
    r"\((?:(?:known|optional)\b|restarting\)|(?:during|at|on|while|in) (?:the )?(?:close|closing|shut ?down|exit|tear ?down|clean-?up|end)\b"
    r"|[^()]{0,60}\b(?:sleeping (?:for )?\d|as it should|on purpose|not (?:of|in|part of|used by) (?:this|our|the) (?:job|run)"
    r"|see (?:the )?(?:ticket|issue|incident)|no process was killed"
    r"|(?:stopped|ended|killed) by (?:you|us|hand|request)))"
)
"""What the program adds to an error, behind it and in brackets."""


def is_doubtful(event: LogEvent, known: Signature | None) -> bool:
    """Is there doubt that what the line tells ended anything of the run?

    Args:
        known: What the catalogue has on it: words of the known error itself tell of nothing that was done then.
    """
    text = event.text if known is None else re.sub(known.pattern, "", event.text, count=1)
    if event.is_followed or event.kind == "traceback":
        return event.is_followed
    if event.is_bare or _REMARK.search(text):
        return True
    if EXCEPTION.match(event.text):
        given_up = max((found.end() for found in GIVES_UP.finditer(text)), default=0) if gives_up(text) else 0
        if any(found[0] != "expected" for found in HANDLED.finditer(text, given_up)):  # ``(expected 3, got 2)``
            return True
        return _TAKEN_INSTEAD.search(text) is not None
    if gives_up(text):
        return False
    if known is not None and event.level == "E" and OF_ONE_REQUEST.search(event.text):
        return True
    return _WENT_ON.search(text) is not None
