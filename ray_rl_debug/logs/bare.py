"""What somebody may have caught and printed, or may be of somebody else, with no word beside it that anything of the run ended."""

from __future__ import annotations

import re
from itertools import islice

from ray_rl_debug.logs.others import is_of_others
from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.tracebacks import FRAME, START
from ray_rl_debug.logs.window import Window
from ray_rl_debug.logs.words import GIVES_UP

LINES_BEHIND = 3
"""Read for words of an end."""
_BODY = re.compile(r"_?main|fit|train|learn|run|launch|_?run_\w*process|\w*_loop|_fn|recipe_main|worker\w*")
"""Functions that are what a program or a process does."""
_SERVES = re.compile(r"(?:[\w./-]*/)?serving_\w+\.py:")
"""Of vLLM's server, the parts that answer one request each; the engine has others."""
_OF_A_CELL = re.compile(rf"\w+ {{3,}}{re.escape(START)}")
"""As IPython begins what it prints of an error in a cell."""
_HEADS_END = re.compile(r":$|\bstderr follows\b|^Error executing job|\b(?:[Rr]ank|[Ww]orker|[Pp]rocess|pid)[ #:=]{1,2}\d")
"""Above a traceback, of what ended with it or whose it is."""


def is_bare(window: Window, one: Spotted) -> bool:
    """Does a traceback begin in a function that is no program's body, with no mark of a rank, nothing above that introduces it, and no end behind?

    Python begins what it prints of an error that nobody catches in the program's first line, so somebody cut this one, or caught it. An actor of
    Ray's prints none that nobody caught: who called it gets the error. So is the line below a server's record on a request.
    """
    block, before = one.block, window.line_before(one.start)
    if block is None:
        is_next = one.head.level is None and not one.head.is_stamped and before.level == "E" and before.writer == one.head.writer
        is_of_a_request = is_next and _SERVES.match(before.source or "") is not None and GIVES_UP.search(before.text) is None
        return is_of_a_request or is_of_others(window, one)
    if _OF_A_CELL.match(block.lines[0]):
        return True  # who sits before it tries again
    if block.is_caught is not True or block.remote is not None or one.signature is not None:
        return False
    if one.writer.rank is not None:
        return False  # torchrun's launcher marks what it takes from the end of a rank
    first = next((found for line in block.lines if (found := FRAME.match(line)) is not None), None)
    if (first is not None and _BODY.fullmatch(first["function"] or "")) or _HEADS_END.search(before.text) or GIVES_UP.search(before.text):
        return False
    return not any(GIVES_UP.search(after.text) for after in islice(window.next_of(one.head.writer, one.end), LINES_BEHIND))
