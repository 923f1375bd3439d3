"""Where a large log may hold stacks: most of it is looked at by one search only."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from ray_rl_debug.formats.pasted.likely import DENSE, telling_lines
from ray_rl_debug.formats.pasted.lines import MAX_CHARS
from ray_rl_debug.logs.search import Searcher

SMALL_BYTES = 16 << 10
"""A text of this size is read line by line, whatever it holds."""
MEDIUM_BYTES = 256 << 10
"""A text of this size is read around every line that a reader knows; a larger one around clear signs only."""
BEFORE, AFTER = 12, 60
"""Lines around a sign: names stand above a stack, remarks below."""
MAX_SIGNS = 200_000

_SIGNS = re.compile(
    r'Thread[ :]|Traceback|most recent call|\bFile \\?["\'][^"\'\n]{1,300}["\'], line|Process:? \d+[:\n]'
    r"|\(\S{1,200}\.(?:py|pyx|so[.\d]*|cc|cpp|c|S)(?::\d+)?\)"
    r"|#\d{1,3}:? {1,4}(?:0x|\S{1,100} from )|\[<0?|\(T\) |coroutine stack|UNW_E|EPERM|os error|[Pp]y-?[Ss]py|Fatal Python|/proc/\d+/|Stack dump for"
    r"|\bPID\b.{1,60}\b(?:CMD|COMMAND|WCHAN|STAT)\b|\.py:\d+(?:,? in |`? ?\|)|Call to |^\[pid +\d+\] \w+\(| state:[RSDTt] |\+0x[0-9a-f]{1,8}/0x"
    r"|\bstrace[: ]|\bps (?:-\w{1,8} ){0,4}-?\w{0,6}o ?pid\b"
)


_LITERALS = (
    "Thread",
    "raceback",
    "ecent call",
    'File "',
    'File \\"',
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
    "o pid,",
    "opid,",
    "Call to ",
    "[pid ",
    " state:",
    "+0x",
    "strace",
)
"""One of them is in every sign."""
_SHAPES = (
    rb"Thread[ :]",
    rb"Traceback|most recent call",
    rb"File \\?[\"'][^\"'\n]{0,1200}[\"'], line",
    rb"Process:? (?:[:\n]|$)",
    rb"\([^\s(]{0,800}\.(?:py|pyx|so[.]*|cc|cpp|c|S):?\)",
    rb"#:? {1,4}(?:x|\S{0,400} from )",
    rb"\[<",
    rb"\(T\) |coroutine stack|UNW_E|EPERM|os error|[Pp]y-?[Ss]py|Fatal Python|/proc//|Stack dump for",
    rb"PID\b.{0,240}(?:CMD|COMMAND|WCHAN|STAT)",
    rb"\.py:(?:,? in |`? ?\|)|Call to |\[pid +\] | state:[RSDTt] |\+x|strace[: ]",
)
"""The same signs in lines without their digits, and somewhat wider: a line whose shape has none of these is no sign."""
_OF_SHAPE = re.compile(b"|".join(_SHAPES))


@functools.cache
def _searcher() -> Searcher:
    return Searcher((text.encode() for text in _LITERALS), library=False, keep=lambda shape: _OF_SHAPE.search(shape) is not None)


def lines_of(text: bytes) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, from 1; of a large text those near a sign of a stack. Between regions comes an empty line."""
    if len(text) <= MEDIUM_BYTES:
        told = telling_lines(text, lambda line: _SIGNS.search(line) is not None) if len(text) > SMALL_BYTES else None
        if told is None or len(told[0]) * DENSE > told[1]:
            yield from enumerate(text.decode("utf-8", "replace").split("\n"), 1)
            return
        signs = told[0]
    else:
        signs = _signs(text)
    starts = {start for _, start in signs}
    number, at = 1, 0
    for line, start in signs:
        if start < at:
            continue
        begin, first = start, line
        for _ in range(BEFORE):
            if begin <= at:
                break
            begin = max(at, text.rfind(b"\n", at, begin - 1) + 1)
            first -= 1
        if begin > at:
            number = first
            yield number - 1, ""
        at, left = begin, AFTER
        while left and at < len(text):
            left = AFTER if at in starts else left - 1
            end = text.find(b"\n", at)
            end = len(text) if end < 0 else end
            yield number, text[at:end].decode("utf-8", "replace")
            number, at = number + 1, end + 1


def _signs(text: bytes) -> list[tuple[int, int]]:
    """Number, from 1, and beginning of the lines that hold a sign."""
    found: list[tuple[int, int]] = []
    for line, start, end in _searcher().search(text)[0]:
        # A character has four bytes at most.
        if _SIGNS.search(text[start : min(end, start + 4 * MAX_CHARS) + 1].decode("utf-8", "replace"), 0, MAX_CHARS):
            found.append((line + 1, start))
            if len(found) >= MAX_SIGNS:
                break
    return found
