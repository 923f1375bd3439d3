"""Is an error bare: caught and printed, or of somebody else, as far as the text tells, with no word beside it that anything of the run ended?"""

from __future__ import annotations

import re
from itertools import islice

from ray_rl_debug.logs.ends import GIVES_UP
from ray_rl_debug.logs.finished import IN_THREAD
from ray_rl_debug.logs.kinds import OF_PYTHON
from ray_rl_debug.logs.others import is_of_others
from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.tracebacks import FRAME, START
from ray_rl_debug.logs.window import Window
from ray_rl_debug.model.snapshot.log_book import LogWriter

LINES_BEHIND = 3
"""Read for words of an end."""
_BODY = re.compile(r"_?main|fit|train|learn|run|launch|_?run_\w*process|\w*_loop|_fn|recipe_main|worker\w*")
"""Functions that are what a program or a process does."""
_SERVES = re.compile(r"(?:[\w./-]*/)?serving_\w+\.py:")
"""Of vLLM's server, the parts that answer one request each; the engine has others."""
_GIVEN = ("<stdin>", "<console>")
"""So Python calls code that it reads from somebody: from a tool that tries an answer, or a person. ``<string>`` is a program of a job, too."""
_OF_A_LIBRARY = re.compile(
    r"-packages/(?!(?:torch\w*|ray|vllm|sglang|verl|areal|agentlightning|deepspeed|megatron|transformers|accelerate|trl|datasets|tensordict|lightning"
    r"|openrlhf|nemo_rl|slime|roll|skyrl\w*|lmdeploy|tensorrt_llm|streaming|composer|mooncake|lmcache|nixl)/)"
)
"""Code of a package that does none of a run's work itself: it reports, watches or connects."""
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
    if _is_given(one) or (before.text.startswith(IN_THREAD) and _is_of_library(one)):
        return not _ends_behind(window, one)
    if block.is_caught is not True or block.remote is not None or one.signature is not None:
        return False
    if one.writer.rank is not None:
        return False  # torchrun's launcher marks what it takes from the end of a rank
    first = next((found for line in block.lines if (found := FRAME.match(line)) is not None), None)
    if (first is not None and _BODY.fullmatch(first["function"] or "")) or _HEADS_END.search(before.text) or GIVES_UP.search(before.text):
        return False
    return not _ends_behind(window, one)


def _ends_behind(window: Window, one: Spotted) -> bool:
    return any(GIVES_UP.search(after.text) for after in islice(window.next_of(one.head.writer, one.end), LINES_BEHIND))


def _is_given(one: Spotted) -> bool:
    """Does it come from a text that Python was given, by whom nobody knows? A process of Ray's or of a launcher marks its lines."""
    return one.block is not None and one.block.begins_in in _GIVEN and one.signature is None and one.writer == LogWriter() and one.head.level is None


def _is_of_library(one: Spotted) -> bool:
    """Is all code of a thread that ended Python's, or that of packages beside the run? The thread of a tracker ends alone."""
    files = _files(one)
    return one.signature is None and bool(files) and all(OF_PYTHON.search(file) or _OF_A_LIBRARY.search(file) for file in files)


def _files(one: Spotted) -> list[str]:
    """Of the frames, the outermost first."""
    lines = one.block.lines if one.block is not None else ()
    return [found["file"] for line in lines if (found := FRAME.match(line)) is not None]
