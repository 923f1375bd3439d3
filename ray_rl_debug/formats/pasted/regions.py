"""Where a large log may hold stacks: most of it is looked at by one search only."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ray_rl_debug.formats.pasted.lines import MAX_CHARS

SMALL_CHARS = 256 << 10
"""A text of this size is read line by line, whatever it holds."""
BEFORE, AFTER = 12, 60
"""Lines around a sign: names stand above a stack, remarks below."""
MAX_SIGNS = 200_000

_SIGNS = re.compile(
    r'Thread[ :]|Traceback|most recent call|\bFile ["\'][^"\'\n]{1,300}["\'], line|Process:? \d+[:\n]'
    r"|\(\S{1,200}\.(?:py|pyx|so[.\d]*|cc|cpp|c|S)(?::\d+)?\)"
    r"|#\d{1,3}:? {1,4}(?:0x|\S{1,100} from )|\[<0?|\(T\) |coroutine stack|UNW_E|EPERM|os error|[Pp]y-?[Ss]py|Fatal Python|/proc/\d+/|Stack dump for"
    r"|\bPID\b.{1,60}\b(?:CMD|COMMAND|WCHAN|STAT)\b|\.py:\d+,? in |Call to "
)


_LITERALS = (
    "Thread",
    "raceback",
    "ecent call",
    'File "',
    "File '",
    "Process",
    ".py:",
    ".py)",
    ".so)",
    ".so.",
    ".cpp",
    ".cc:",
    ".c:",
    ".S:",
    "#0",
    "frame #",
    "(T) ",
    "coroutine stack",
    "UNW_E",
    "EPERM",
    "os error",
    "y-spy",
    "y-Spy",
    "yspy",
    "ySpy",
    "Fatal Python",
    "/proc/",
    "Stack dump for",
    "[<",
    "PID",
    "Call to ",
)
"""One of them is in every sign: looked for first, because that costs a tenth."""


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, from 1; of a large text those near a sign of a stack. Between regions comes an empty line."""
    if len(text) <= SMALL_CHARS:
        yield from enumerate(text.split("\n"), 1)
        return
    signs = _lines_with_signs(text)
    number, at = 1, 0
    for start in sorted(signs):
        if start < at:
            continue
        begin = start
        for _ in range(BEFORE):
            if begin <= at:
                break
            begin = max(at, text.rfind("\n", at, begin - 1) + 1)
        if begin > at:
            number += text.count("\n", at, begin)
            yield number - 1, ""
        at, left = begin, AFTER
        while left and at < len(text):
            left = AFTER if at in signs else left - 1
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            yield number, text[at:end]
            number, at = number + 1, end + 1


def _lines_with_signs(text: str) -> set[int]:
    """Where the lines begin that hold a sign."""
    found: set[int] = set()
    for literal in _LITERALS:
        at = text.find(literal)
        while at >= 0 and len(found) < MAX_SIGNS:
            start = text.rfind("\n", 0, at) + 1
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            if start not in found and _SIGNS.search(text, start, min(end + 1, start + MAX_CHARS)):
                found.add(start)
            at = text.find(literal, end)
    return found
