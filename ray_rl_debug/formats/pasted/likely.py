"""Which lines of a text some reader may know, asked once for each shape of line: a log has many lines and few shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ray_rl_debug.formats.pasted import kernel, plain_table, ps, said
from ray_rl_debug.formats.pasted.classify import classify
from ray_rl_debug.formats.pasted.events import Gone
from ray_rl_debug.formats.pasted.lines import MAX_CHARS, read_line
from ray_rl_debug.logs.search import Searcher
from ray_rl_debug.logs.shapes import DIGITS

DENSE = 20
"""With one such line in so many, a text is no log."""
ENOUGH = 40
"""Such lines that show it."""
_LITERALS = (
    "Thread",
    "thread",
    "stack",
    "raceback",
    "ecent call",
    "File ",
    "Process",
    "Stack dump",
    ".py",
    ".so",
    ".cpp",
    ".cc",
    ".cu",
    ".rs",
    ".c:",
    ".S:",
    ".h:",
    "<module>",
    "<string>",
    "<frozen",
    "python",
    "#",
    "0x",
    "[<",
    "(T) ",
    "coroutine stack",
    "/proc/",
    "PID",
    "Pid:",
    "State:",
    " state:",
    "+0x",
    "_wait",
    "_poll",
    "poll_",
    "pipe_",
    "do_exit",
    "UNW_E",
    "EPERM",
    "os error",
    "ptrace",
    "strace",
    "pystack",
    "y-spy",
    "yspy",
    "ySpy",
    "y-Spy",
    "Fatal Python",
    "Call to ",
    "syscall",
    "<Task ",
    "→",
    "←",
    " in `",
    " at `",
    "` -> ",
    "` <",
    "Waiting for the GIL",
    "@ ",
)
"""One of them is in every line that tells of a stack by itself."""


@functools.cache
def _searcher() -> Searcher:
    return Searcher((text.encode() for text in _LITERALS), library=False)


def telling_lines(text: bytes, is_sign: Callable[[str], bool]) -> tuple[list[tuple[int, int]], int] | None:
    """Number, from 1, and beginning of the lines that a reader knows by themselves, and how many lines there are.

    None where all should be read: a table begins, whose rows tell nothing without its heading, or the text is no log but stacks.

    Args:
        is_sign: Says of a line whether it is one anyway.
    """
    searcher = _searcher()
    lines, ended = searcher.search(text)
    found = []
    for number, start, end in lines:
        raw = text[start : min(end, start + 4 * MAX_CHARS)]
        shape = raw.translate(None, DIGITS)
        if shape in searcher.known.shapes:
            continue
        told = raw.decode("utf-8", "replace")[:MAX_CHARS]
        plain = read_line(told).text
        if ps.heading(plain) or plain_table.columns(plain):
            return None
        if is_sign(told) or _is_known(plain):
            found.append((number + 1, start))
            if len(found) == ENOUGH and len(found) * DENSE > number:
                return None
        elif end - start < MAX_CHARS:
            searcher.known.add((shape,), len(shape))
    return found, ended + 1


def _is_known(text: str) -> bool:
    if "<Task " in text or any(not isinstance(event, Gone) for event in classify(text)):
        return True
    return kernel.pair(text) is not None or kernel.status(text) is not None or said.unread(text, expected=False) is not None
