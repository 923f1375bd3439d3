"""Where a large log may hold stacks: most of it is looked at by one search only."""

from __future__ import annotations

import re
from collections.abc import Iterator

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


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, from 1; of a large text those near a sign of a stack. Between regions comes an empty line."""
    if len(text) <= SMALL_CHARS:
        yield from enumerate(text.split("\n"), 1)
        return
    lines = text.split("\n")
    number, end_of_line, last = 0, -1, 0
    for count, found in enumerate(_SIGNS.finditer(text)):
        if count >= MAX_SIGNS:
            return
        at = found.start()
        if at > end_of_line:
            number += text.count("\n", max(end_of_line, 0), at)
            end_of_line = text.find("\n", at)
            end_of_line = len(text) if end_of_line < 0 else end_of_line
            first = max(last, number - BEFORE)
            if first > last and last:
                yield last + 1, ""
            for n in range(first, min(number + AFTER, len(lines))):
                yield n + 1, lines[n]
            last = max(last, min(number + AFTER, len(lines)))
