"""Is an error its writer's last word? What ends a program is; behind it come more of its message, others' errors and launchers that end the rest.

A known error is no exception, but for services that outlive what they tell of, and for errors of a device, by which a process is lost that still
writes. Its message may be long, so behind an exception only a record of its writer, or work that is counted, is more than that.
"""

from __future__ import annotations

import re
from itertools import islice

from ray_rl_debug.logs.behind import QUOTES
from ray_rl_debug.logs.ends import speaks_of_an_end
from ray_rl_debug.logs.finished import was_finished
from ray_rl_debug.logs.heads import Head
from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.steps import read_step
from ray_rl_debug.logs.window import Window
from ray_rl_debug.logs.words import EXCEPTION, OF_A_DEVICE, TELLS_OLDER, judge
from ray_rl_debug.model.snapshot.log_book import LogWriter

LINES_BEHIND = 4
_IS_MESSAGE = re.compile(
    r"(?i:note|hint|what\(\)|current thread|stack|pc: |@ |file |summary|#|thread|please|for more|see |if |possible|reason|solution|https?:|run |try "
    r"|make sure|search for|refer |check |set the |nvml |compile |root cause|caused|this |to |traceback|original |exception|python "
    r"|no python|missing |ready |\d{1,6}: \[|future: |task: |goroutine|runtime stack|called `|index out|key '|access to|you |in order|nccl"
    r"|expected|received|got |usage|options|available |config search path"
    r"|memory on the node|the (?:above|node|hostname|actor|task)\b|parameter|set \w|\(?\d[.)] |\[SQL|e[a-z]\d{4}: |(?:gcc|g\+\+|nvcc|ptxas) "
    r"|\[\d+\]:|[-*=|+>#\"'{`~^│╰└┗]|\((?![\w-]+\) \w)"
    r"|.{0,8}$)"
)
"""Beginnings of lines that belong to an error's message, or are advice of whoever raised it."""
_BY_ITSELF = re.compile(
    r"panicked at |^panic: |^(?:Fatal|fatal error|FATAL)|terminate called|^triggerUncaught|^Abort|\*\*\* |Assertion|^Task exception|NCCL(?! WARN)"
    r"|validation errors? for|NVRM: |EXT4-fs|Killed process \d|Watchdog timeout|Error merging "
)
"""Of errors that print more behind their first line, in forms of their own."""
_OF_THE_KERNEL = re.compile(r"(?:\S+ ){0,2}kernel: |(?:\S+ kernel: )?\[(?: *\d{1,9}\.\d+|\w{3} \w{3} [ \d]\d [\d:]{8} \d{4})\] ")
"""The machine goes on, and tells it, whatever became of the process."""
_NCCL_INFO = "NCCL INFO "
_FAILED_CALL = re.compile(r" -> \d+$| -> \d+ ?\[")
"""So NCCL tells, function by function, that a call failed."""
_SOURCE = re.compile(r"\b[\w/]{1,80}\.(?:c|cc|cpp|cu|h):\d{1,6}\b")
_OF_SERVICES = frozenset({"accelerators", "kubernetes", "nccl", "os", "slurm"})
"""Layers of programs that tell how others end."""


def is_followed(window: Window, one: Spotted) -> bool:
    """Did the writer of an error write on as if nothing had ended?"""
    return _is_silent_if_ended(one) and _BY_ITSELF.search(one.text) is None and _wrote_on(window, one)


def is_after_work(window: Window, one: Spotted) -> bool:
    """Was all its work done before?"""
    return not _is_grave(one) and was_finished(window, one)


def _is_grave(one: Spotted) -> bool:
    return one.head.level == "F" or TELLS_OLDER.search(one.text) is not None


def _is_silent_if_ended(one: Spotted) -> bool:
    """Would its writer say no more, had it ended? Services tell how others end, and who loses a device may still write."""
    if TELLS_OLDER.search(one.text) is not None:
        return False
    if one.signature is None:
        return True
    if OF_A_DEVICE.search(one.text) or one.head.writer.program == "kernel" or _OF_THE_KERNEL.match(one.text):
        return False
    return one.signature.layer not in _OF_SERVICES or one.kind != "death"


def _wrote_on(window: Window, one: Spotted) -> bool:
    own = one.block.message if one.block is not None else ()
    lines = window.next_of(one.head.writer, one.end, anybody=_is_bare_exception(one) or _is_nobodys(one))
    for after in islice((h for h in lines if h.text), LINES_BEHIND):
        if QUOTES.match(after.text) or speaks_of_an_end(after.text) or after.level in ("E", "F"):
            return False
        if _is_of_a_rank(one) and after.writer == LogWriter() and not after.is_stamped and after.level is None:
            continue
        if after.text not in own and _is_of_the_program(after, one):
            return True
    return False


def _is_bare_exception(one: Spotted) -> bool:
    """Is it one line without a traceback, of no rank? Where such a one ends a run the others of it do not write on either."""
    is_alone = one.block is None and one.signature is None and one.head.level is None and one.head.writer.rank is None
    return is_alone and EXCEPTION.match(one.text) is not None


def _is_nobodys(one: Spotted) -> bool:
    """Is it a known error in one line that has no mark of a process? Where it ends a run, nobody of that writes on."""
    return one.block is None and one.signature is not None and (one.head.writer.rank, one.head.writer.pid) == (None, None)


def _is_of_a_rank(one: Spotted) -> bool:
    """Has an exception the mark of a rank? torch puts it before what nobody caught, a launcher before each line: lines without it are of others."""
    return one.head.writer.rank is not None and one.head.level is None and EXCEPTION.match(one.text) is not None


def _is_of_the_program(after: Head, one: Spotted) -> bool:
    if after.level in ("D", "I") or (after.level == "W" and EXCEPTION.match(one.text) is None) or (after.is_stamped and after.level is None):
        return True
    if " NCCL WARN " in after.text:
        return False
    if after.text.startswith(_NCCL_INFO):
        return "NCCL WARN " in one.text and _FAILED_CALL.search(after.text) is None
    if _is_grave(one):
        return False  # only a record of the same writer is more than its message
    if one.signature is not None and one.block is not None:
        return read_step(after.text) is not None
    return not _is_of_its_message(after, one) and judge(after.text, after.level) is None


def _is_of_its_message(after: Head, one: Spotted) -> bool:
    """Is a line that no record begins one more of the error's message, or of the report that its program prints?"""
    if after.indent > 0 or _IS_MESSAGE.match(after.text) is not None:
        return True
    if one.block is None and one.text.endswith(":") and (one.signature is not None or EXCEPTION.match(one.text)):
        return True
    name = one.head.text.split(" ", 1)[0]
    if after.text.startswith(name) and (name.endswith(":") or (one.signature is not None and name.isalpha())):
        return True
    source = _SOURCE.search(one.head.text)
    return source is not None and source[0] in after.text
