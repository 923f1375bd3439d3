"""Words that tell of an end, or of trouble that brings one: one table for all who ask whether a program went on.

They are beginnings of words, for a line behind an error and for a second clause behind it. A line that holds none of them may tell that work goes on;
that one holds such a word proves no end. Aborting is left to the words of giving up, which know whose request was aborted.
"""

from __future__ import annotations

import re

from ray_rl_debug.logs.words import GIVES_UP

OF_AN_END = (
    r"(?i:stop|shut|aborts\b|exit|quit|terminat|kill|end(?:s|ed|ing)?\b|die[sd]?\b|dead|los[st]|gone|closed|down\b|tear|leav|drain|evict|preempt|cancel"
    r"|fail|error|fatal|crash|broken|unhealthy|unreachable|unexpect|refus|reject|interrupt|hang|hung|stuck|exhaust|giv(?:e|es|ing) up|back-?off"
    r"|signal|sig(?:term|kill|int|segv|abrt|bus|quit)\b)"
)
_ENDS = re.compile(rf"\b{OF_AN_END}")


def speaks_of_an_end(text: str) -> bool:
    """Does a line hold words of an end, or of giving up?"""
    return GIVES_UP.search(text) is not None or _ENDS.search(text) is not None
