"""Was the work done, or an end wanted, before something failed?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ray_rl_debug.logs.ends import OF_ASKING
from ray_rl_debug.logs.heads import Head
from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.window import LOOK_BACK_BYTES, Window
from ray_rl_debug.logs.words import FINISHED, judge

TRACKING_PROGRAMS = ("wandb",)
IN_THREAD = "Exception in thread "
LINES_BACK = 40
"""So many lines before an error in a thread are read for words that the work is done."""
_ANNOUNCED = re.compile(
    r"\b[Ss]hut ?down (?:was )?(?:initiated|requested)\b(?!.*\b(?:because|due)\b)"
    r"|\b(?:[Ss]hutting down|[Ss]topping|[Tt]earing down) [^.]{0,80}\. .{0,80}\b(?:ignore|expected|normal|harmless)\b"
)
"""Of a program that is about to end because somebody asked it to, or says that errors will come of it."""
_SHUTS_DOWN = re.compile(r"\b[Ss]hutting down\b(?!.*\b(?:because|due|after)\b)")
_ALL_DONE = "All done"
"""Counts at the beginning of a line only."""
_CANCELLED = re.compile(r"(?:[\w.]+\.)?(?:CancelledError|KeyboardInterrupt|SystemExit|TaskCancelledError)\b")
_OF_PEERS = re.compile(
    r"SIGTERM|[Bb]roken pipe|BrokenPipe|(?:[Cc]onnection|[Ss]ocket)(?: \w+){0,4} (?:refused|reset|closed|lost|aborted|error)"
    r"|[Ff]ailed to connect|[Dd]isconnected|\bEOF\b"
)
_DIED = re.compile(r"\b(?:died|is dead|(?:exited|ended) unexpectedly)\b(?!.*\b(?:exit ?code|signal|status)\b)")
_PARTS = re.compile(r"\b[Ff]ailed to (?:shut ?down|close|leave|deregister)\b")
_ENDED_BY_ASKING = re.compile(rf"\b(?:exit ?code|exited with code|exit status|signal)[ :=]*\(?{OF_ASKING}\b|\bsignal[ :=]*\(?15\b")


def is_of_an_end(one: Spotted, before: Head) -> bool:
    """Is it something that the end of a run brings about also where all went well: others go, helpers are told to end, threads are left?"""
    if one.block is not None:
        return before.text.startswith(IN_THREAD) or _CANCELLED.match(one.text) is not None
    if one.kind == "error" and one.signature is None and one.head.writer.program in TRACKING_PROGRAMS:
        return True
    if one.signature is not None:
        is_late_end = one.signature.late and (tells_only_that_it_is_gone(one.text) or _PARTS.search(one.text) is not None)
        return one.signature.effect == "cascade" or is_late_end
    return (_OF_PEERS.search(one.text) or _ENDED_BY_ASKING.search(one.text)) is not None


def tells_only_that_it_is_gone(text: str) -> bool:
    """Does a line tell of another process that it has ended, and neither how nor why?"""
    return _DIED.search(text) is not None


def was_finished(window: Window, one: Spotted) -> bool:
    """Does a line shortly before say that the work is done?"""
    told = (row for row in _rows_before(window, one) if _ALL_DONE in row or FINISHED.search(row) or _ANNOUNCED.search(row))
    before = (window.head(row).text for row in told)  # reading a line takes long
    return any((FINISHED.search(text) or _ANNOUNCED.search(text)) and judge(text, None) is None for text in before)


def is_ending(window: Window, one: Spotted) -> bool:
    """Did its program say shortly before that it shuts down? If an error made it do so, that stands before."""
    return one.head.level != "F" and any(_SHUTS_DOWN.search(row) for row in _rows_before(window, one))


def _rows_before(window: Window, one: Spotted) -> Iterator[str]:
    rows = window.text[max(0, one.start - LOOK_BACK_BYTES) : one.start].split(b"\n")[-LINES_BACK:]
    return (row.decode("utf-8", "replace") for row in rows)
