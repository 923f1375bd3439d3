"""Did the writer of a failure go on in spite of it?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from ray_rl_debug.logs.aside import aside
from ray_rl_debug.logs.ends import GIVES_UP, OF_ASKING, fails_to_end, speaks_of_an_end
from ray_rl_debug.logs.framed import is_shown
from ray_rl_debug.logs.heads import Head
from ray_rl_debug.logs.named import is_one_process
from ray_rl_debug.logs.others import ended_beside
from ray_rl_debug.logs.routine import Routine
from ray_rl_debug.logs.samples import is_in_sample
from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.steps import read_step
from ray_rl_debug.logs.tracebacks import FRAME, START, Block
from ray_rl_debug.logs.undone import is_done_behind
from ray_rl_debug.logs.window import LOOK_BACK_BYTES, Window
from ray_rl_debug.logs.words import (
    CLIENT_LEFT,
    EXCEPTION,
    FINISHED,
    OF_A_SAMPLE,
    OF_ONE_ANSWER,
    OF_ONE_REQUEST,
    RETRIES,
    SCORED,
    SMALL_TOOL,
    TELLS_OLDER,
    goes_on,
    judge,
)
from ray_rl_debug.model.snapshot.log_book import LogWriter

MAX_RAISED = 4
"""Exceptions that a record lists below itself, each in a line, one as the cause of the next."""
CAUGHT_AND_WROTE_ON = 3
"""So many records behind a traceback that a function caught and printed, none of which tells of trouble, tell the same.

Lines without a time or a level may belong to its message."""
WROTE_ON = 2
"""So many lines behind an error in code that it ran as text tell that the program itself did not end by it."""
LINES_BACK = 40
"""So many lines before an error in a thread are read for words that the work is done."""
TRACKING_PROGRAMS = ("wandb",)
_SERVE_ALL = ("raylet", "gcs_server", "autoscaler")
"""Parts of Ray that speak of the objects and processes of others, who tell how it went on."""
_SHELLS = ("bash", "sh")
_SHARED_MEMORY_TRACKER = re.compile(r"^resource_tracker\.py:\d+ in main$")
"""Python's tracker of shared memory prints what it caught for each of its messages, and goes on."""
_ANSWERED = re.compile(r'"(?:POST|PUT|PATCH) /\S+ HTTP/[\d.]+" (?P<status>[24]\d\d)\b')
"""A server's line of a request: it refused a wrong one, or did the work of the next. What only looks is answered also when the work has ended."""
_HEALTHY = re.compile(r'"GET /\S*health\S* HTTP/[\d.]+" 200\b')
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
_LOADED = re.compile(r"\b(?:[Ll]oaded|[Rr]esumed|[Rr]estored) (?:\w+ ){0,3}\S*/\S")
"""Behind a file that could not be read, of the one that was taken instead."""
LACKS = re.compile(r"cannot import name|No module named|undefined symbol|(?:Import|ModuleNotFound)Error|cannot open shared object")
_ANNOUNCED = re.compile(
    r"\b[Ss]hut ?down (?:was )?(?:initiated|requested)\b(?!.*\b(?:because|due)\b)"
    r"|\b(?:[Ss]hutting down|[Ss]topping|[Tt]earing down) [^.]{0,80}\. .{0,80}\b(?:ignore|expected|normal|harmless)\b"
)
"""Of a program that is about to end because somebody asked it to, or says that errors will come of it."""
_SHUTS_DOWN = re.compile(r"\b[Ss]hutting down\b(?!.*\b(?:because|due|after)\b)")
_ALL_DONE = "All done"
"""Counts at the beginning of a line only."""
_LEAVES = re.compile(r"\b(?:[Ee]xiting|[Gg]iving up|[Cc]annot continue)\b")
_LOOKED_UP = re.compile(r"(?:ModuleNotFound|Import|FileNotFound|Permission|NotADirectory)Error: ")
"""Something was not there: programs look for what they can do without."""
_CANCELLED = re.compile(r"(?:[\w.]+\.)?(?:CancelledError|KeyboardInterrupt|SystemExit|TaskCancelledError)\b")
_OF_PEERS = re.compile(
    r"SIGTERM|[Bb]roken pipe|BrokenPipe|(?:[Cc]onnection|[Ss]ocket)(?: \w+){0,4} (?:refused|reset|closed|lost|aborted|error)"
    r"|[Ff]ailed to connect|[Dd]isconnected|\bEOF\b"
)
_DIED = re.compile(r"\b(?:died|is dead|(?:exited|ended) unexpectedly)\b(?!.*\b(?:exit ?code|signal|status)\b)")
"""Of another process, whose end says no more than that it is gone."""
_PARTS = re.compile(r"\b[Ff]ailed to (?:shut ?down|close|leave|deregister)\b")
_ENDED_BY_ASKING = re.compile(rf"\b(?:exit ?code|exited with code|exit status|signal)[ :=]*\(?{OF_ASKING}\b|\bsignal[ :=]*\(?15\b")
_OWN_SCORE = re.compile(
    r"(?i:\b(?:score|reward|grade|verdict)s?)(?: is| of)?[ :=]{1,3}-?\d{1,2}(?:\.\d{1,6})?(?:/\d{1,3})?(?![\d.:/\w])"
    r"|\breturn(?:s|ed|ing) -?\d\.\d{1,4}\b|\b(?:verdict|judged)[ :=]{1,3}(?:CE|RE|WA|TLE|MLE|OLE)\b"
)
"""What an answer that could not be read or run is worth, said together with why; no ``reward:8000``."""
_GRADER = re.compile(r"-packages/(?:math_verify|latex2sympy2\w*|sympy|antlr4|lighteval|rouge_score|nltk)/")
IN_THREAD = "Exception in thread "
_IN_REQUEST = "Exception occurred during processing of request from "
"""Words of Python's own servers, which take the next request."""
OF_PYTHON = re.compile(r"/lib(?:64)?/python3[\d.]*/(?!(?:site|dist)-packages/)|^<frozen")
_OF_TRACKER = re.compile(
    r"-packages/(?:wandb|weave|langfuse|langsmith|posthog|agentops|mlflow|tensorboardX?|opentelemetry|prometheus_client|swanlab|comet_ml|clearml|neptune|trackio|aim|sentry_sdk)/"
)
QUOTES = re.compile(r"(?i:(?:captured |last )?(?:std(?:err|out)|output)(?: output| logs?| tail)?(?: of \S{1,60})?:$)")
"""``Stderr output:`` in an error's message."""
AT_EXIT = "Error in atexit._run_exitfuncs"


def handled(window: Window, one: Spotted) -> str | None:
    """Words beside a failure which say that its writer goes on: in its own line, in the record of a traceback, or soon after."""
    found = _by_itself(window, one) or _by_line_before(window, one)
    return found if found is not None or TELLS_OLDER.search(one.text) else _by_next_lines(window, one)


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
    if one.block is not None and one.block.is_caught and _OF_TRACKER.search(one.block.begins_in or ""):
        return "a tracker caught it: something is not reported"
    if one.block is not None and one.block.is_caught and _GRADER.search(one.block.begins_in or ""):
        return "a grader caught it: one answer of the model could not be read"
    if _is_report(one) and one.block is None and one.head.level == "E" and OF_ONE_REQUEST.search(one.text) and not GIVES_UP.search(one.text):
        return "a server says it of one request"
    if one.block is None and one.signature is None and _OWN_SCORE.search(one.text) and not GIVES_UP.search(one.text):
        return "its score is said with it"
    if one.block is None and (beside := ended_beside(one.text)) is not None:
        return beside
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
    if (_is_of_an_end(one, before) or _is_step(one)) and was_finished(window, one):
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
    if before.text.startswith(IN_THREAD) and _is_of_tracker(one.block):
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


def _by_next_lines(window: Window, one: Spotted) -> str | None:
    own = one.block.message if one.block is not None else ()
    written = records = 0
    is_step, is_report = _is_step(one), _is_report(one)
    is_told = False
    is_caught = _is_printed(one, window)
    may_be_tried = _may_be_tried(one) or (one.block is not None and one.block.ran_text)
    is_feeders = one.block is not None and _is_of_feeder(one.block)
    routine = Routine(window, one) if one.block is None and one.kind == "error" and one.signature is None else None
    writer = one.before.writer if one.before is not None and one.head.writer == LogWriter() else one.head.writer
    is_anybodys = (is_step and one.head.writer == LogWriter()) or (one.signature is None and writer.program in _SERVE_ALL)
    for after in window.next_of(writer, one.end, anybody=is_anybodys):
        if one.before is not None and one.before.level in ("D", "I", "W") and _is_next_record(after, one.before):
            # An uncaught error prints its traceback behind any line, too; but then no more lines come, or those of a launcher that ends the rest.
            return None if GIVES_UP.search(after.text) else "logged as a note or a warning, and it wrote on"
        if QUOTES.match(after.text):
            return None  # what another process printed, not what this one went on with
        if is_step and SMALL_TOOL.match(after.text):
            continue
        if after.text.startswith("Exception ignored in"):
            continue  # that is ignored, not what came before
        if _is_same_record(after, one.head):
            if (words := goes_on(after.text)) is not None:
                return words
            continue
        if one.signature is not None and one.signature.over is not None:
            if re.search(one.signature.over, after.text):
                return after.text
            continue
        if is_feeders and (done := read_step(after.text)) is not None:
            return f"a thread that feeds a queue, and it went on: {done[1]} {done[0]:g}"
        if one.block is None and is_done_behind(one.text, after.text):
            return after.text
        if _complains_on(one, after) or (is_report and _is_of_one_kind(one, after)):
            continue
        if START in after.text or judge(after.text, after.level) is not None:
            return None
        if is_step and after.text:
            return None if GIVES_UP.search(after.text) else "a tool complained, and the script went on"
        if (one.block is not None or one.kind == "error") and (answer := _ANSWERED.search(after.text)) is not None:
            return f"a server's request, and it answered {answer['status']}"
        if "ealth check" in one.text and _HEALTHY.search(after.text):
            return "asked again, the server said that it is healthy"
        written += bool(after.text)
        is_told = is_told or (
            is_report and (after.level in ("D", "I") or (one.block is None and after.level is None and after.is_stamped and one.head.is_stamped))
        )
        if is_told and speaks_of_an_end(after.text) and goes_on(after.text, behind=True) is None:
            return None
        if (may_be_tried or is_caught) and SCORED.search(after.text) and read_step(after.text) is None:
            return "code of a model that was tried, and scored"
        if _is_note(one) and after.level in ("D", "I") and not speaks_of_an_end(after.text):
            return "logged as a note, and it wrote on"
        if FINISHED.search(after.text) and (_is_of_an_end(one, window.line_before(one.start)) or _is_ending(window, one)):
            return "the work was done"
        if is_caught and speaks_of_an_end(after.text):
            return None
        if routine is not None and speaks_of_an_end(after.text):
            routine = None
        if routine is not None and routine.goes_on(after):
            return "its writer went on with what it does again and again"
        records += after.level in ("D", "I") or (after.is_stamped and after.level is None)
        if is_caught and records >= CAUGHT_AND_WROTE_ON:
            return "a function caught it, and the program wrote on"
        if is_own_words(one) and _LOADED.search(after.text):
            return after.text
        if is_own_words(one) and LACKS.search(one.text) and written >= WROTE_ON and not GIVES_UP.search(after.text):
            return "a part that it can do without is missing, and it wrote on"
        if one.block is not None and one.block.ran_text and GIVES_UP.search(after.text):
            return None
        if one.block is not None and one.block.ran_text and written >= WROTE_ON:
            return "code that the program was given as text, and the program wrote on"
        if (after.text not in own or RETRIES.match(after.text) or FINISHED.match(after.text)) and (
            words := goes_on(after.text, behind=True)
        ) is not None:
            return words
    return "logged as an error, and it wrote on as before" if is_told else None


def _is_step(one: Spotted) -> bool:
    """Is it the complaint of a small tool, or of a shell, which is one step of a script?"""
    is_tool = SMALL_TOOL.match(one.head.text) is not None or (one.head.writer.program in _SHELLS and one.kind == "error")
    return one.block is None and (one.signature is None or one.signature.layer == "os") and is_tool


def _complains_on(one: Spotted, after: Head) -> bool:
    """Is it one more line of a tool's complaint? Tools write no time, and several lines to say what failed."""
    is_bare = one.signature is None or (one.head.level == "E" and one.head.writer == LogWriter())
    is_tools = one.block is None and one.kind == "error" and is_bare and not one.head.is_stamped
    return is_tools and not after.is_stamped and (said := judge(after.text, after.level)) is not None and said.kind == "error"


def _is_of_one_kind(one: Spotted, after: Head) -> bool:
    """Is it one more record at level error, of the same source file, that tells of no death? One cause often makes several."""
    said = judge(after.text, after.level)
    own, other = _source_file(one.head), _source_file(after)
    return one.block is None and said is not None and said.kind == "error" and own is not None and own == other


def _source_file(head: Head) -> str | None:
    return head.source.rpartition(":")[0] if head.source is not None else None


def _is_report(one: Spotted) -> bool:
    """Is it a record at level error, or with a time and no level?

    It reports, and ends nothing when more records of its writer follow, none of which tells of trouble. So does one with a traceback that is no known
    error, or in which a module or a file was not there, for which programs are prepared.
    """
    if one.block is None:
        is_record = one.head.level == "E" or (one.head.level is None and one.head.is_stamped and one.head.writer.program is None)
        return one.kind == "error" and one.signature is None and is_record
    level = one.before.level if one.before is not None else one.head.level
    return level == "E" and (one.signature is None or _LOOKED_UP.match(one.text) is not None)


def _is_printed(one: Spotted, window: Window) -> bool:
    """Is it a traceback that a function caught and printed without a record? Hydra cuts the outer frames off, and ends."""
    is_caught = one.block is not None and one.block.is_caught is True and one.block.last != "" and one.block.remote is None
    return is_caught and one.signature is None and one.before is None and not window.line_before(one.start).text.startswith("Error executing job")


def _may_be_tried(one: Spotted) -> bool:
    """Is it what a compiler, an interpreter or a shell says of a program, with no mark of a process and no time in front?"""
    is_bare = one.head.writer == LogWriter() and one.head.level in (None, "E") and not one.head.is_stamped
    return one.block is None and one.signature is None and one.kind in ("error", "death") and is_bare


def _is_note(one: Spotted) -> bool:
    return one.kind == "known" and one.head.level in ("D", "I") and EXCEPTION.match(one.head.text) is None


def is_own_words(one: Spotted) -> bool:
    """Did the program put an error that is known into a sentence of its own, at no level? Nothing was raised there."""
    return one.kind == "known" and one.head.level is None and EXCEPTION.match(one.head.text) is None


def _is_of_feeder(block: Block) -> bool:
    """Python prints what the thread raises that feeds a queue of multiprocessing, and the thread takes the next object."""
    first = next((found for line in block.lines if (found := FRAME.match(line)) is not None), None)
    return first is not None and first["function"] == "_feed" and first["file"].endswith("multiprocessing/queues.py")


def _is_of_tracker(block: Block) -> bool:
    """Is the outermost code that is not Python's own that of a tracker?"""
    files = (found["file"] for line in block.lines if (found := FRAME.match(line)) is not None)
    return any(_OF_TRACKER.search(file) for file in islice((f for f in files if not OF_PYTHON.search(f)), 1))


def _is_of_an_end(one: Spotted, before: Head) -> bool:
    """Is it something that the end of a run brings about also where all went well: others go, helpers are told to end, threads are left?"""
    if one.block is not None:
        return before.text.startswith(IN_THREAD) or _CANCELLED.match(one.text) is not None
    if one.kind == "error" and one.signature is None and one.head.writer.program in TRACKING_PROGRAMS:
        return True
    if one.signature is not None:
        return one.signature.effect == "cascade" or (one.signature.late and (_DIED.search(one.text) or _PARTS.search(one.text)) is not None)
    return (_OF_PEERS.search(one.text) or _ENDED_BY_ASKING.search(one.text)) is not None


def was_finished(window: Window, one: Spotted) -> bool:
    """Does a line shortly before say that the work is done?"""
    told = (row for row in _rows_before(window, one) if _ALL_DONE in row or FINISHED.search(row) or _ANNOUNCED.search(row))
    before = (window.head(row).text for row in told)  # reading a line takes long
    return any((FINISHED.search(text) or _ANNOUNCED.search(text)) and judge(text, None) is None for text in before)


def _is_ending(window: Window, one: Spotted) -> bool:
    """Did its program say shortly before that it shuts down? If an error made it do so, that stands before."""
    return one.head.level != "F" and any(_SHUTS_DOWN.search(row) for row in _rows_before(window, one))


def _rows_before(window: Window, one: Spotted) -> Iterator[str]:
    rows = window.text[max(0, one.start - LOOK_BACK_BYTES) : one.start].split(b"\n")[-LINES_BACK:]
    return (row.decode("utf-8", "replace") for row in rows)


def _is_same_record(after: Head, first: Head) -> bool:
    """Is it one more line of an error's record, for each of which a logger repeats its head, as torch's do?

    Only a stamp finer than a second tells: in one second there are several records.
    """
    is_fine = first.time_s is not None and first.time_s % 1 != 0
    return is_fine and first.level == "E" and (after.level, after.time_s) == (first.level, first.time_s)


def _is_next_record(after: Head, before: Head) -> bool:
    return after.level in ("D", "I") and after.is_stamped == before.is_stamped
