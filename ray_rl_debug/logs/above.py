"""What the line above tells of the one that is read: whose it is, at which level it was written, and that it says more of the same."""

from __future__ import annotations

import re

import msgspec

from ray_rl_debug.logs.heads import Head
from ray_rl_debug.logs.window import Window
from ray_rl_debug.logs.words import EXCEPTION
from ray_rl_debug.model.snapshot.log_book import LogWriter

_FRAME_OF_JAVA = re.compile(rb"[^\n]{0,120}?[\t ]at [\w.$/<>]{3,200}\(")
_NOTES = re.compile(r"(?i:error|fail|exception|retry)|: ?$")
_PANEL = re.compile(r"[╭┌┏][─━]+ Error [─━]")


def record_of_java(window: Window, head: Head, start: int, end: int) -> Head | None:
    """Of an exception of Java's the record right above that prints it; one that nobody caught has words in front of it."""
    if head.level is not None or not EXCEPTION.match(head.text) or not _FRAME_OF_JAVA.match(window.text, end + 1):
        return None
    above = window.line_before(start)
    return above if above.level is not None and above.writer == head.writer else None


def out_of_panel(window: Window, head: Head, start: int) -> Head:
    """Of a line between bars, right below the heading *Error*, what stands between them: so typer refuses a command line."""
    if not head.text.startswith(("│", "┃")) or not _PANEL.match(window.line_before(start).text):
        return head
    return msgspec.structs.replace(head, text=head.text.strip("│┃ "))


def is_of_error_above(window: Window, head: Head, start: int) -> bool:
    """Does the line above tell the error of which this one says more: an exception of the same writer, or a record whose next line it is?"""
    above = window.line_before(start)
    return (above.writer == head.writer and EXCEPTION.match(above.text) is not None) or _continues(head, above)


def of_record_above(window: Window, head: Head, start: int) -> Head:
    """An exception without any mark, right below a record at level error, is the record's next line: its process is that of the record."""
    if not EXCEPTION.match(head.text):
        return head
    above = window.line_before(start)
    return msgspec.structs.replace(head, writer=above.writer) if _continues(head, above) else head


def _continues(head: Head, above: Head) -> bool:
    return head.writer == LogWriter() and not head.is_stamped and head.level is None and above.level in ("E", "F") and above.is_stamped


def note_above(window: Window, head: Head, start: int) -> Head | None:
    """Of an exception that stands alone, without any traceback, the record right above where that notes an error: it is the record's next line."""
    if head.level is not None or head.is_stamped or not EXCEPTION.match(head.text):
        return None
    above = window.line_before(start)
    is_note = above.level in ("D", "I", "W") and above.is_stamped and _NOTES.search(above.text) is not None
    return above if is_note and head.writer in (above.writer, LogWriter()) else None
