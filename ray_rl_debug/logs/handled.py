"""Did the writer of a failure go on in spite of it?"""

from __future__ import annotations

import re

from ray_rl_debug.logs.aside import aside
from ray_rl_debug.logs.behind import went_on_behind
from ray_rl_debug.logs.described import is_field, is_ready_again
from ray_rl_debug.logs.ends import GIVES_UP, fails_to_end
from ray_rl_debug.logs.finished import IN_THREAD, is_of_an_end, was_finished
from ray_rl_debug.logs.framed import is_shown
from ray_rl_debug.logs.heads import Head
from ray_rl_debug.logs.kinds import OF_TRACKER, is_of_tracker, is_report, is_step
from ray_rl_debug.logs.named import is_one_process
from ray_rl_debug.logs.others import ended_beside
from ray_rl_debug.logs.samples import is_in_sample
from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.window import Window
from ray_rl_debug.logs.words import (
    CLIENT_LEFT,
    EXCEPTION,
    OF_A_SAMPLE,
    OF_ONE_ANSWER,
    OF_ONE_REQUEST,
    TELLS_OLDER,
    goes_on,
)

MAX_RAISED = 4
"""Exceptions that a record lists below itself, each in a line, one as the cause of the next."""
_SHARED_MEMORY_TRACKER = re.compile(r"^resource_tracker\.py:\d+ in main$")
"""Python's tracker of shared memory prints what it caught for each of its messages, and goes on."""
_PLUGIN = re.compile(r"(?:task/(?:cgroup|affinity)|jobacct_gather/\w+|acct_gather\w*(?:/\w+)?|xcgroup_\w+|cgroup/v\d): (?!.*(?:oom|OOM|[Kk]ill))")
"""Plugins of Slurm's that bind and measure tasks, by the names that stand before their lines."""
_SKIPS = re.compile(
    r"^[Ee]rror caught(?: was)?:|\bfailed with retryable exception\b|"
    r"(?:[Ee]rror|[Ff]ail(?:ed|ure)|[Ee]xception|[Cc]ould not|[Ii]nvalid)\b.*\b(?:[Ss]kipping|[Ii]gnoring|[Cc]ontinuing|[Ff]alling back)\b"
)
"""Of a line without a level, which no logger wrote. One that tries again may have done so for the last time."""
_RAISES = re.compile(r"(?:Raises|Throws):$")
"""Of documentation, above the errors that a function may raise."""
ABOVE = re.compile(r"^(?:[Ii]gnoring|[Ss]kipping) (?:this|the|an?) (?:exception|error)\b")
_ENDS_OTHERS = re.compile(r"\++ (?:sudo )?(?:pkill|kill|killall|ray stop|scancel|docker (?:kill|stop|rm))\b")
"""A command that a shell shows before it runs it, below which it tells who ended."""
_DOCUMENTS = re.compile(r"^\.\. |::$")
"""Above a block of text that is shown as it is."""
_TELLS = re.compile(r"\b(?:[Ee]rror|[Ff]ailed|[Ff]ailure|[Ee]xception)\b")
_LEAVES = re.compile(r"\b(?:[Ee]xiting|[Gg]iving up|[Cc]annot continue)\b")
_OWN_SCORE = re.compile(
    r"(?i:\b(?:score|reward|grade|verdict)s?)(?: is| of)?[ :=]{1,3}-?\d{1,2}(?:\.\d{1,6})?(?:/\d{1,3})?(?![\d.:/\w])"
    r"|\breturn(?:s|ed|ing) -?\d\.\d{1,4}\b|\b(?:verdict|judged)[ :=]{1,3}(?:CE|RE|WA|TLE|MLE|OLE)\b"
)
"""What an answer that could not be read or run is worth, said together with why; no ``reward:8000``."""
_GRADER = re.compile(r"-packages/(?:math_verify|latex2sympy2\w*|sympy|antlr4|lighteval|rouge_score|nltk)/")
_IN_REQUEST = "Exception occurred during processing of request from "
"""Words of Python's own servers, which take the next request."""
AT_EXIT = "Error in atexit._run_exitfuncs"


def handled(window: Window, one: Spotted) -> str | None:
    """Words beside a failure which say that its writer goes on: in its own line, in the record of a traceback, or soon after."""
    found = _by_itself(window, one) or _by_line_before(window, one)
    return found if found is not None or TELLS_OLDER.search(one.text) else went_on_behind(window, one)


def _by_itself(window: Window, one: Spotted) -> str | None:
    if one.block is None and (words := goes_on(one.head.text)) is not None:
        return words
    if is_in_sample(window, one.head.writer, one.start, one.end) or (one.block is not None and OF_A_SAMPLE.match(one.head.text)):
        return "text that a model was asked or gave"
    if is_shown(window, one.head.writer, one.start, one.end):
        return "the program shows what another one printed"
    if one.block is not None and _SHARED_MEMORY_TRACKER.match(one.block.frame or ""):
        return "Python's tracker of shared memory caught it"
    if one.block is None and one.kind == "error" and one.signature is None and (why := aside(window, one)) is not None:
        return why
    if one.kind == "error" and one.signature is None and OF_ONE_ANSWER.search(one.text):
        return "one answer of the model could not be read"
    if one.block is not None and one.block.is_caught and OF_TRACKER.search(one.block.begins_in or ""):
        return "a tracker caught it: something is not reported"
    if one.block is not None and one.block.is_caught and _GRADER.search(one.block.begins_in or ""):
        return "a grader caught it: one answer of the model could not be read"
    if is_report(one) and one.block is None and one.head.level == "E" and OF_ONE_REQUEST.search(one.text) and not GIVES_UP.search(one.text):
        return "a server says it of one request"
    if one.block is None and one.signature is None and _OWN_SCORE.search(one.text) and not GIVES_UP.search(one.text):
        return "its score is said with it"
    if one.block is None and (beside := ended_beside(one.text)) is not None:
        return beside
    if one.block is None and is_field(one) and is_ready_again(window, one):
        return "how its container ended the last time; it is ready now"
    if one.signature is None and CLIENT_LEFT.search(one.text):
        return "a client did not wait for its answer"
    if one.head.writer.program == "slurmstepd" and _PLUGIN.match(one.head.text):
        return "a plugin of Slurm complained; steps go on without it"
    return None


def _by_line_before(window: Window, one: Spotted) -> str | None:
    before = window.line_before(one.start)
    if one.block is None and "Exception ignored" in before.text:
        return "ignored"
    if one.block is None and one.head.indent and _RAISES.match(window.heading(one.start, one.head.indent)):
        return "text that documents what may be raised"
    if (is_of_an_end(one, before) or is_step(one)) and was_finished(window, one):
        return "the work was done before"
    if one.kind == "death" and _ENDS_OTHERS.match(before.text) and one.signature is None:
        return "the script ended it"
    if one.block is None and one.text.startswith("Error: ") and before.level is None and is_one_process(before.writer, one.head.writer):
        skips = goes_on(before.text)
        if skips is not None:
            return skips  # it was printed as the reason
    if one.block is None and fails_to_end(before.text) and EXCEPTION.match(one.text) and is_one_process(before.writer, one.head.writer):
        return "it was raised where something was to be ended"
    if one.block is None:
        return goes_on(record.text) if (record := _record_above(window, one)) is not None else None
    if before.text == "--- Logging error ---":
        return "a line could not be logged"
    if before.text.startswith(_IN_REQUEST):
        return "a server's request"
    if before.text.startswith(IN_THREAD) and is_of_tracker(one.block):
        return "a thread that only reports to a tracker"
    if _LEAVES.search("\n".join((one.text, *one.block.message))):
        return None
    if one.before is None:
        if is_one_process(before.writer, one.head.writer) and (words := ABOVE.search(before.text)) is not None:
            return words[0]
        if before.text.endswith(":") and is_one_process(before.writer, one.head.writer) and (said := goes_on(before.text, behind=True)) is not None:
            return said
        if one.head.indent and _DOCUMENTS.search(window.heading(one.start, one.head.indent)):
            return "text that documents what may be raised"
        if before.text.startswith(">>> ") and one.block.frame is None:
            return "an example of documentation"
        return words[0] if is_one_process(before.writer, one.head.writer) and (words := _SKIPS.search(before.text)) is not None else None
    if "Exception ignored" in one.before.text:
        return "ignored"
    if one.before.level in ("D", "I") and _TELLS.search(one.before.text) and is_one_process(one.before.writer, one.head.writer):
        return "logged as a note of what failed"
    if one.before.text.startswith(AT_EXIT):
        return "of the program's own end"
    return goes_on(one.before.text)


def _record_above(window: Window, one: Spotted) -> Head | None:
    """Of an exception without any mark the record at level error whose next line it is, or one of the next: that says what is done about it."""
    if one.head.is_stamped or one.head.level is not None or one.signature is not None or EXCEPTION.match(one.text) is None:
        return None
    at = one.start
    for _ in range(MAX_RAISED):
        above = window.line_before(at)
        if above.is_stamped or above.level is not None:
            return above if above.level == "E" and above.is_stamped and above.writer == one.writer else None
        if EXCEPTION.match(above.text) is None:
            break
        at = window.text.rfind(b"\n", 0, at - 1) + 1
    return None
