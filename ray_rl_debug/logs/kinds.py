"""What sort of failure was found, by its own words and by the record around it."""

from __future__ import annotations

import re
from itertools import islice

from ray_rl_debug.logs.heads import Head
from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.tracebacks import FRAME, Block
from ray_rl_debug.logs.window import Window
from ray_rl_debug.logs.words import EXCEPTION, SMALL_TOOL, judge
from ray_rl_debug.model.snapshot.log_book import LogWriter

_SHELLS = ("bash", "sh")
_LOOKED_UP = re.compile(r"(?:ModuleNotFound|Import|FileNotFound|Permission|NotADirectory)Error: ")
"""Something was not there: programs look for what they can do without."""
OF_PYTHON = re.compile(r"/lib(?:64)?/python3[\d.]*/(?!(?:site|dist)-packages/)|^<frozen")
OF_TRACKER = re.compile(
    r"-packages/(?:wandb|weave|langfuse|langsmith|posthog|agentops|mlflow|tensorboardX?|opentelemetry|prometheus_client|swanlab|comet_ml|clearml|neptune|trackio|aim|sentry_sdk)/"
)


def is_step(one: Spotted) -> bool:
    """Is it the complaint of a small tool, or of a shell, which is one step of a script?"""
    is_tool = SMALL_TOOL.match(one.head.text) is not None or (one.head.writer.program in _SHELLS and one.kind == "error")
    return one.block is None and (one.signature is None or one.signature.layer == "os") and is_tool


def complains_on(one: Spotted, after: Head) -> bool:
    """Is it one more line of a tool's complaint? Tools write no time, and several lines to say what failed."""
    is_bare = one.signature is None or (one.head.level == "E" and one.head.writer == LogWriter())
    is_tools = one.block is None and one.kind == "error" and is_bare and not one.head.is_stamped
    return is_tools and not after.is_stamped and (said := judge(after.text, after.level)) is not None and said.kind == "error"


def is_of_one_kind(one: Spotted, after: Head) -> bool:
    """Is it one more record at level error, of the same source file, that tells of no death? One cause often makes several."""
    said = judge(after.text, after.level)
    own, other = _source_file(one.head), _source_file(after)
    return one.block is None and said is not None and said.kind == "error" and own is not None and own == other


def _source_file(head: Head) -> str | None:
    return head.source.rpartition(":")[0] if head.source is not None else None


def is_report(one: Spotted) -> bool:
    """Is it a record at level error, or with a time and no level?

    It reports, and ends nothing when more records of its writer follow, none of which tells of trouble. So does one with a traceback that is no known
    error, or in which a module or a file was not there, for which programs are prepared.
    """
    if one.block is None:
        is_record = one.head.level == "E" or (one.head.level is None and one.head.is_stamped and one.head.writer.program is None)
        return one.kind == "error" and one.signature is None and is_record
    level = one.before.level if one.before is not None else one.head.level
    return level == "E" and (one.signature is None or _LOOKED_UP.match(one.text) is not None)


def is_printed(one: Spotted, window: Window) -> bool:
    """Is it a traceback that a function caught and printed without a record? Hydra cuts the outer frames off, and ends."""
    is_caught = one.block is not None and one.block.is_caught is True and one.block.last != "" and one.block.remote is None
    return is_caught and one.signature is None and one.before is None and not window.line_before(one.start).text.startswith("Error executing job")


def may_be_tried(one: Spotted) -> bool:
    """Is it what a compiler, an interpreter or a shell says of a program, with no mark of a process and no time in front?"""
    is_bare = one.head.writer == LogWriter() and one.head.level in (None, "E") and not one.head.is_stamped
    return one.block is None and one.signature is None and one.kind in ("error", "death") and is_bare


def is_note(one: Spotted) -> bool:
    return one.kind == "known" and one.head.level in ("D", "I") and EXCEPTION.match(one.head.text) is None


def is_own_words(one: Spotted) -> bool:
    """Did the program put an error that is known into a sentence of its own, at no level? Nothing was raised there."""
    return one.kind == "known" and one.head.level is None and EXCEPTION.match(one.head.text) is None


def is_of_feeder(block: Block) -> bool:
    """Python prints what the thread raises that feeds a queue of multiprocessing, and the thread takes the next object."""
    first = next((found for line in block.lines if (found := FRAME.match(line)) is not None), None)
    return first is not None and first["function"] == "_feed" and first["file"].endswith("multiprocessing/queues.py")


def is_of_tracker(block: Block) -> bool:
    """Is the outermost code that is not Python's own that of a tracker?"""
    files = (found["file"] for line in block.lines if (found := FRAME.match(line)) is not None)
    return any(OF_TRACKER.search(file) for file in islice((f for f in files if not OF_PYTHON.search(f)), 1))


def is_same_record(after: Head, first: Head) -> bool:
    """Is it one more line of an error's record, for each of which a logger repeats its head, as torch's do?

    Only a stamp finer than a second tells: in one second there are several records.
    """
    is_fine = first.time_s is not None and first.time_s % 1 != 0
    return is_fine and first.level == "E" and (after.level, after.time_s) == (first.level, first.time_s)


def is_next_record(after: Head, before: Head) -> bool:
    return after.level in ("D", "I") and after.is_stamped == before.is_stamped
