"""Is a record at level error the last one of its log? A program that wrote notes before and none since did not go on, as far as anybody can see.

What only measures, reports or was tried is told of elsewhere, with the words by which it was survived; here nothing but the order counts.
"""

from __future__ import annotations

import re

from ray_rl_debug.logs.ends import speaks_of_an_end
from ray_rl_debug.logs.handled import QUOTES, TRACKING_PROGRAMS
from ray_rl_debug.logs.named import is_one_process
from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.steps import read_step
from ray_rl_debug.logs.window import Window
from ray_rl_debug.logs.words import FINISHED, judge

BYTES_AROUND = 4 << 10
"""So much is read before and behind it; more behind it is more than the rest of a message."""
_WELL = re.compile(r"\b(?:[Ss]uccess\w*|[Nn]ormal(?:ly)?|[Gg]raceful(?:ly)?|[Cc]lean(?:ly)?|[Dd]one|[Cc]ompleted?|(?:code|status)[ =:]*0)\b")

_OF_ONE_OF_MANY = re.compile(
    r"\b(?i:samples?|requests?|prompts?|episodes?|trajector(?:y|ies)|rows?|examples?|questions?|problems?|images?|documents?|urls?|turns?|messages?"
    r"|conversations?|tool[ _]calls?|completions?|responses?(?! from)|generations?)\b"
)
"""What a run has thousands of: one of them that failed is left out, or filled in."""


def is_last_word(window: Window, one: Spotted) -> bool:
    """Did its writer write notes before it, and does nothing come behind it but words of an end?"""
    level = one.head.level or (one.before.level if one.before is not None else None)
    if level != "E" or one.kind == "known" or one.head.writer.program in TRACKING_PROGRAMS:
        return False
    said = one.head.text if one.block is None else one.before.text if one.before is not None else ""
    if one.signature is None and _OF_ONE_OF_MANY.search(said):
        return False
    return _ends_here(window, one) and _wrote_before(window, one)


def _ends_here(window: Window, one: Spotted) -> bool:
    if len(window.text) - one.end > BYTES_AROUND:
        return False
    for _, text in window.lines_from(one.end + 1):
        after = window.head(text)
        if QUOTES.match(after.text):
            return True  # the rest is what another process printed
        if FINISHED.search(after.text) or read_step(after.text) is not None:
            return False
        is_record = after.is_stamped or after.level is not None
        if is_record and judge(after.text, after.level) is None and (_WELL.search(after.text) or not speaks_of_an_end(after.text)):
            return False
    return True


def _wrote_before(window: Window, one: Spotted) -> bool:
    writer = one.head.writer if one.before is None else one.before.writer
    rows = window.text[max(0, one.start - BYTES_AROUND) : one.start].split(b"\n")[-2::-1]
    heads = (window.head(row[:400].decode("utf-8", "replace")) for row in rows if row)
    return any(h.level in ("D", "I") and is_one_process(h.writer, writer) for h in heads)
