"""What in a log says that something ended. An error beside which nothing says so was logged: it may be a failure, and may be nothing.

A logger writes level *error* for what a program survives as well as for what ends it, and a block that was pasted alone does not show what came
behind it. So a line is told as a failure only where its words, its form, the catalogue or the rest of the logs say that somebody ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ray_rl_debug.logs.shapes import without_digits
from ray_rl_debug.model.snapshot.log_book import LogEvent
from ray_rl_debug.story.candidates import STEPS_ON, Candidate, is_light, last_line
from ray_rl_debug.story.doubts import is_doubtful
from ray_rl_debug.story.evidence import is_seen_by_another, tells_of_an_end

WHY = "it was logged as an error; nothing in these logs says that anything ended by it"
SETTLES = "the lines behind it in the same log (later steps: it was survived), the exit code of that process, or its stacks"


def only_noted(found: Sequence[Candidate], *, logs: int) -> bool:
    """Were errors logged that the run is not known to have survived, with nothing in all these logs that says that anything ended?

    Args:
        logs: That were read; one alone may be a few lines that somebody copied.
    """
    serious = [c for c in found if c.survived is None]
    passed: defaultdict[str, list[LogEvent]] = defaultdict(list)
    for one in found:
        if one.survived is not None:
            passed[one.book.file].append(one.event)
    return bool(serious) and not any(
        tells_of_an_end(c.event, c.signature)
        or _stopped_there(c, logs)
        or _passed_before(c.event, passed.get(c.book.file, ()))
        or _failed_with_a_part(c, serious)
        for c in serious
    )


def _stopped_there(one: Candidate, logs: int) -> bool:
    """Did work stop there? Steps were counted before it, and none behind it; a process in which a known error stops the work may write on.

    A light error tells nothing by its place in one log, which may be copied from a living run up to any line: of 3425 errors this tells one less, and
    of 30 innocent blocks it accused two. Whoever gives the logs of many gives whole ones; two counts say there that a process worked.
    """
    if one.event.is_after_work or (one.event.is_followed and one.signature is None):
        return False
    if one.event.kind == "error" and one.signature is None and is_doubtful(one.event, None):
        return False  # its own line tells what was done then
    counts = {(s.unit, s.step) for s in one.book.steps}
    is_of_a_step = any(s.file_line == one.event.file_line for s in one.book.steps)  # ``Step 12 failed: Traceback``
    is_placed = is_of_a_step or not is_light(one.event, one.signature)
    if not is_placed and logs < 2:
        return False
    return len(counts) >= (1 if is_placed else STEPS_ON) and all(s.file_line < last_line(one.event) for s in one.book.steps)


def _failed_with_a_part(one: Candidate, serious: Sequence[Candidate]) -> bool:
    """Does it see that another process is gone, and log one more error?"""
    if one.signature is None or not one.signature.late or not is_seen_by_another(one.event):
        return False
    return any(c is not one and c.book is one.book and c.event.writer == one.event.writer for c in serious)


def _passed_before(event: LogEvent, passed: Sequence[LogEvent]) -> bool:
    """Did its writer survive the same before, and say so, and not this time?"""
    return any((e.kind, e.writer, e.signature) == (event.kind, event.writer, event.signature) and _same(e.text, event.text) for e in passed)


def _same(a: str, b: str) -> bool:
    return without_digits(a) == without_digits(b)
