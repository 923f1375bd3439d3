"""The lines behind a failure: words of its writer by which it went on."""

from __future__ import annotations

import enum
import re

from ray_rl_debug.logs.ends import GIVES_UP, speaks_of_an_end
from ray_rl_debug.logs.finished import is_ending, is_of_an_end
from ray_rl_debug.logs.heads import Head
from ray_rl_debug.logs.kinds import (
    complains_on,
    is_next_record,
    is_note,
    is_of_feeder,
    is_of_one_kind,
    is_own_words,
    is_printed,
    is_report,
    is_same_record,
    is_step,
    may_be_tried,
)
from ray_rl_debug.logs.routine import Routine
from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.steps import read_step
from ray_rl_debug.logs.tracebacks import START
from ray_rl_debug.logs.undone import is_done_behind
from ray_rl_debug.logs.window import Window
from ray_rl_debug.logs.words import FINISHED, RETRIES, SCORED, SMALL_TOOL, goes_on, judge
from ray_rl_debug.model.snapshot.log_book import LogWriter

CAUGHT_AND_WROTE_ON = 3
"""So many records behind a traceback that a function caught and printed, none of which tells of trouble, tell the same.

Lines without a time or a level may belong to its message."""
WROTE_ON = 2
"""So many lines behind an error in code that it ran as text tell that the program itself did not end by it."""
_SERVE_ALL = ("raylet", "gcs_server", "autoscaler")
"""Parts of Ray that speak of the objects and processes of others, who tell how it went on."""
_ANSWERED = re.compile(r'"(?:POST|PUT|PATCH) /\S+ HTTP/[\d.]+" (?P<status>[24]\d\d)\b')
"""A server's line of a request: it refused a wrong one, or did the work of the next. What only looks is answered also when the work has ended."""
_HEALTHY = re.compile(r'"GET /\S*health\S* HTTP/[\d.]+" 200\b')
_LOADED = re.compile(r"\b(?:[Ll]oaded|[Rr]esumed|[Rr]estored) (?:\w+ ){0,3}\S*/\S")
"""Behind a file that could not be read, of the one that was taken instead."""
LACKS = re.compile(r"cannot import name|No module named|undefined symbol|(?:Import|ModuleNotFound)Error|cannot open shared object")
QUOTES = re.compile(r"(?i:(?:captured |last )?(?:std(?:err|out)|output)(?: output| logs?| tail)?(?: of \S{1,60})?:$)")
"""``Stderr output:`` in an error's message."""


class _Then(enum.Enum):
    ENDS = enum.auto()
    """What comes behind says nothing of this failure."""
    NEXT = enum.auto()
    """The line is one more of the failure."""


def went_on_behind(window: Window, one: Spotted) -> str | None:
    """Words behind a failure which say that its writer went on."""
    behind = _Behind(window, one)
    writer = one.before.writer if one.before is not None and one.head.writer == LogWriter() else one.head.writer
    is_anybodys = (behind.is_step and one.head.writer == LogWriter()) or (one.signature is None and writer.program in _SERVE_ALL)
    for after in window.next_of(writer, one.end, anybody=is_anybodys):
        said = behind.read(after)
        if said is _Then.ENDS:
            return None
        if isinstance(said, str):
            return said
    return "logged as an error, and it wrote on as before" if behind.is_told else None


class _Behind:
    """The lines behind one failure, as far as they were read."""

    def __init__(self, window: Window, one: Spotted) -> None:
        self.is_step, self.is_told = is_step(one), False
        self._window, self._one = window, one
        self._own = one.block.message if one.block is not None else ()
        self._written = self._records = 0
        self._is_report, self._is_caught = is_report(one), is_printed(one, window)
        self._ran_text = one.block is not None and one.block.ran_text
        is_light = one.block is None and one.kind == "error" and one.signature is None
        self._routine = Routine(window, one) if is_light else None

    def read(self, after: Head) -> str | _Then | None:
        """Words by which it went on; None where this line tells neither."""
        for ask in (self._as_its_record, self._as_its_trouble, self._as_an_end, self._as_its_work, self._as_its_part):
            if (said := ask(after)) is not None:
                return said
        is_own = after.text in self._own and not RETRIES.match(after.text) and not FINISHED.match(after.text)
        return None if is_own else goes_on(after.text, behind=True)

    def _as_its_record(self, after: Head) -> str | _Then | None:
        """Is the line one of the record that tells the failure?"""
        one = self._one
        if one.before is not None and one.before.level in ("D", "I", "W") and is_next_record(after, one.before):
            # An uncaught error prints its traceback behind any line, too; but then no more lines come, or those of a launcher that ends the rest.
            return _Then.ENDS if GIVES_UP.search(after.text) else "logged as a note or a warning, and it wrote on"
        if QUOTES.match(after.text):
            return _Then.ENDS  # what another process printed, not what this one went on with
        if self.is_step and SMALL_TOOL.match(after.text):
            return _Then.NEXT
        if after.text.startswith("Exception ignored in"):
            return _Then.NEXT  # that is ignored, not what came before
        if is_same_record(after, one.head):
            return goes_on(after.text) or _Then.NEXT
        if one.signature is not None and one.signature.over is not None:
            return after.text if re.search(one.signature.over, after.text) else _Then.NEXT
        return None

    def _as_its_trouble(self, after: Head) -> str | _Then | None:
        """Does the line tell that what failed is done, or of more trouble?"""
        one = self._one
        if one.block is not None and is_of_feeder(one.block) and (done := read_step(after.text)) is not None:
            return f"a thread that feeds a queue, and it went on: {done[1]} {done[0]:g}"
        if one.block is None and is_done_behind(one.text, after.text):
            return after.text
        if complains_on(one, after) or (self._is_report and is_of_one_kind(one, after)):
            return _Then.NEXT
        if START in after.text or judge(after.text, after.level) is not None:
            return _Then.ENDS
        if self.is_step and after.text:
            return _Then.ENDS if GIVES_UP.search(after.text) else "a tool complained, and the script went on"
        if (one.block is not None or one.kind == "error") and (answer := _ANSWERED.search(after.text)) is not None:
            return f"a server's request, and it answered {answer['status']}"
        if "ealth check" in one.text and _HEALTHY.search(after.text):
            return "asked again, the server said that it is healthy"
        return None

    def _as_an_end(self, after: Head) -> str | _Then | None:
        """Is the line a record that tells of an end, or of work that is done?"""
        one = self._one
        self._written += bool(after.text)
        is_plain = one.block is None and after.level is None and after.is_stamped and one.head.is_stamped
        self.is_told = self.is_told or (self._is_report and (after.level in ("D", "I") or is_plain))
        is_end = speaks_of_an_end(after.text)
        if self.is_told and is_end and goes_on(after.text, behind=True) is None:
            return _Then.ENDS
        may_be_scored = may_be_tried(one) or self._ran_text or self._is_caught
        if may_be_scored and SCORED.search(after.text) and read_step(after.text) is None:
            return "code of a model that was tried, and scored"
        if is_note(one) and after.level in ("D", "I") and not is_end:
            return "logged as a note, and it wrote on"
        if FINISHED.search(after.text) and (is_of_an_end(one, self._window.line_before(one.start)) or is_ending(self._window, one)):
            return "the work was done"
        return _Then.ENDS if self._is_caught and is_end else None

    def _as_its_work(self, after: Head) -> str | None:
        """Is the line one that the program writes again and again, or one more record?"""
        if self._routine is not None and speaks_of_an_end(after.text):
            self._routine = None
        if self._routine is not None and self._routine.goes_on(after):
            return "its writer went on with what it does again and again"
        self._records += after.level in ("D", "I") or (after.is_stamped and after.level is None)
        if self._is_caught and self._records >= CAUGHT_AND_WROTE_ON:
            return "a function caught it, and the program wrote on"
        return None

    def _as_its_part(self, after: Head) -> str | _Then | None:
        """Did it go on without a part that is missing, or behind code that it was given?"""
        one = self._one
        if is_own_words(one) and _LOADED.search(after.text):
            return after.text
        gives_up = GIVES_UP.search(after.text) is not None
        if is_own_words(one) and LACKS.search(one.text) and self._written >= WROTE_ON and not gives_up:
            return "a part that it can do without is missing, and it wrote on"
        if self._ran_text and gives_up:
            return _Then.ENDS
        if self._ran_text and self._written >= WROTE_ON:
            return "code that the program was given as text, and the program wrote on"
        return None
