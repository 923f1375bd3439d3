"""One place of a log → what failed there."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ray_rl_debug.logs.collectives import read_collective
from ray_rl_debug.logs.heads import Head
from ray_rl_debug.logs.named import described_in, filled, launched_in, named_in
from ray_rl_debug.logs.samples import is_in_sample
from ray_rl_debug.logs.tracebacks import REMOTE, START, Block, read_block
from ray_rl_debug.logs.window import LOOK_BACK_BYTES, Window
from ray_rl_debug.logs.words import (
    ENDED_WELL,
    FINISHED,
    GIVES_UP,
    NOT_THE_JOB,
    OF_A_SAMPLE,
    RETRIES,
    SAID_OF_ANOTHER,
    SMALL_TOOL,
    Said,
    goes_on,
    judge,
)
from ray_rl_debug.model.snapshot.log_book import LogEvent, LogWriter
from ray_rl_debug.privacy.redact import redact
from ray_rl_debug.signatures import EFFECTS, Signature
from ray_rl_debug.signatures.match import Matcher

Key = tuple[object, ...]
WROTE_ON = 2
"""So many lines behind an error in code that it ran as text tell that the program itself did not end by it."""
LINES_BACK = 40
"""So many lines before an error in a thread are read for words that the work is done."""
_SHELLS = ("bash", "sh")
_NO_DIGITS = dict.fromkeys(b"0123456789")
_QUOTED_START = re.compile(rb"[:=,(\[{] ?b?[\"'](?:\\\\n|\\n)*" + re.escape(START.encode()))
"""What a program quotes of another's output, as a value: ``"stderr": "Traceback``."""
_TRACKER = re.compile(r"^resource_tracker\.py:\d+ in main$")
"""Python's tracker of shared memory prints what it caught for each of its messages, and goes on."""
_ANSWERED = re.compile(r'"(?:POST|PUT|PATCH) /\S+ HTTP/[\d.]+" (?P<status>[24]\d\d)\b')
"""A server's line of a request: it refused a wrong one, or did the work of the next. What only looks is answered also when the work has ended."""
_FIELDS_OF_DESCRIBE = ("Reason:", "Exit Code:", "Message:", "Warning  ")
_ENDS = re.compile(r"\b(?:exits?|exited|ends|ended|stops|stopp(?:ed|ing)|quits?|dead)\b")
_AT_EXIT = "Error in atexit._run_exitfuncs"
_CUT = "a traceback that is cut off before its last line"


class Spotted(msgspec.Struct, frozen=True):
    """A failure that was found, not yet told: most are repeated, and telling costs more than finding."""

    key: Key
    """Equal for equal failures of one writer."""
    kind: str
    head: Head
    text: str
    start: int
    end: int
    """Of its last line."""
    writer: LogWriter
    signature: Signature | None = None
    block: Block | None = None
    before: Head | None = None
    """Of a traceback the record that it belongs to, where that names a level."""
    taken: tuple[int, ...] = ()
    """Where its lines begin."""


def spot(window: Window, start: int, end: int, matcher: Matcher, writer: LogWriter) -> Spotted | None:
    """What failed in a line, or in the traceback that begins there; None when nothing did."""
    if window.text.find(START.encode(), start, end) != -1 and not _quotes_output(window, start, end):
        if OF_A_SAMPLE.match(window.head(window.line(start, end).decode("utf-8", "replace")).text):
            return None
        found = _spot_traceback(window, start, matcher, writer)
        if found is not None:
            return found
    after = window.text[end + 1 : end + 400]
    if b"() (pid=" in window.text[start:end] and after.split(b"\n", 1)[0].find(b'File "') != -1:
        return _spot_traceback(window, start, matcher, writer)
    raw = window.line(start, end)
    head = window.head(raw.decode("utf-8", "replace"))
    if OF_A_SAMPLE.match(head.text):
        return None
    hits = list(matcher.match_block(raw))
    signature = min((h.signature for h in hits), key=severity, default=None)
    said = judge(head.text, head.level)
    if said is None:
        if signature is None or ENDED_WELL.search(head.text) or (head.level is None and _is_quoted(head.text, matcher)):
            return None
        said = Said("known")
    if said.kind == "error" and signature is None and head.writer.program in NOT_THE_JOB:
        return None
    if said.kind == "error" and signature is None and START.encode() in after.split(b"\n", 1)[0]:
        # The record of a traceback; the traceback says more.
        return _spot_traceback(window, end + 1, matcher, writer)
    kind = "error" if said.kind == "exception" else said.kind
    cut = next((h.text for h in hits if h.signature is signature), head.text)
    text = cut if said.kind == "known" or len(head.text) > 400 else head.text
    who = filled(head.writer, writer)
    return Spotted((kind, who, shape_of(head.text)), kind, head, text, start, end, who, signature)


def tell(window: Window, one: Spotted, number: int) -> LogEvent:
    """The failure as a fact; `number` is its line."""
    block, head = one.block, one.head
    source = head if head.time_s is not None or one.before is None else one.before
    time_s, zoned = (source.time_s, source.is_zoned) if source.time_s is not None else window.time_in(one.start, one.end)
    if block is not None:
        named = (block.remote, block.first, block.lines[0])
        about = named_in(one.text, block.message) or next((who for text in named if text and (who := named_in(text)) is not None), None)
        lines = (*(block.lines if len(block.lines) <= 6 else (*block.lines[:1], *block.lines[-5:])), *block.message[:3])
    else:
        after = [h.text for h in window.next_of(head.writer, one.end) if h.text and h.time_s is None]
        about = named_in(head.text, tuple(after[:8])) or launched_in(window.line(one.start, one.end).decode("utf-8", "replace"))
        if about is None and head.indent and head.text.startswith(_FIELDS_OF_DESCRIBE):
            about = described_in(window.text[max(0, one.start - LOOK_BACK_BYTES) : one.start])
        lines = tuple(after[:2])
    if about is not None and about.node is None and about.ip is None and one.writer.pid is None and one.writer.rank is None:
        about = msgspec.structs.replace(about, node=one.writer.node)
    return LogEvent(
        kind=one.kind,
        text=redact(one.text),
        file_line=number,
        text_line=_line_of_text(window, one, number),
        writer=one.writer,
        about=about,
        time_s=time_s,
        is_time_own=source.time_s is not None,
        is_zoned=zoned,
        signature=one.signature.id if one.signature else None,
        level=head.level or (one.before.level if one.before is not None and one.before.level in ("E", "F") else None),
        beneath=redact(raised) if (raised := block.first if block is not None else _raised_below(window, one)) else None,
        frame=redact(block.frame) if block and block.frame else None,
        lines=tuple(redact(x) for x in lines),
        collective=read_collective(window.line(one.start, one.end).decode("utf-8", "replace")) if block is None else None,
        handled=_handled(window, one),
    )


def _line_of_text(window: Window, one: Spotted, number: int) -> int | None:
    """Of a traceback the line that is shown, which stands some lines below the first one; None where both are one."""
    block = one.block
    if block is None or not block.last:
        return None
    lines = window.text.count(b"\n", one.start, one.taken[block.last_at])
    return number + lines if lines else None


def _raised_below(window: Window, one: Spotted) -> str | None:
    """Of a known record right above a traceback, what that raised: the record tells what it means, the traceback why."""
    if one.signature is None or START.encode() not in window.text[one.end + 1 : one.end + 400].split(b"\n", 1)[0]:
        return None
    block = read_block(head for _, head in window.block_from(one.end + 1))
    same = block is not None and block.head.writer == one.head.writer
    return (block.last or None) if block is not None and same else None


def severity(signature: Signature) -> tuple[int, int, str]:
    """The more severe signature of a line sorts first."""
    return EFFECTS.index(signature.effect), len(signature.id), signature.id


def shape_of(text: str) -> str:
    """A text without its digits, bounded."""
    return text[:400].translate(_NO_DIGITS)[:160]


def _spot_traceback(window: Window, start: int, matcher: Matcher, writer: LogWriter) -> Spotted | None:
    starts: list[int] = []

    def heads_from() -> Iterator[Head]:
        for at, head in window.block_from(start):
            starts.append(at)
            yield head

    block = read_block(heads_from())
    if block is None:
        return None
    head = block.head
    before = window.line_before(start)
    is_record = (
        head.level is None
        and head.time_s is None
        and (before.level is not None or before.text.startswith(_AT_EXIT) or "Exception ignored" in before.text)
    )
    named = head if head.writer != LogWriter() or not is_record else before
    who = filled(named.writer, writer)
    said = [block.last, *([block.first] if block.first else []), *block.message, *block.lines[-60:]]
    hits = [h.signature for h in matcher.match_block("\n".join(said).encode("utf-8", "replace"))]
    if any(h.effect == "cascade" for h in hits):
        # What is said in front of a traceback ("the scheduler failed: Traceback") follows from its last line, which may name the cause.
        hits = _without_opening(hits, said, matcher)
    text = block.last or _CUT
    last = starts[block.taken[-1]]
    end = window.text.find(b"\n", last)
    return Spotted(
        key=("traceback", who, shape_of(text), block.frame),
        kind="traceback",
        head=head,
        text=text,
        start=start,
        end=len(window.text) if end == -1 else end,
        writer=who,
        signature=min(hits, key=severity, default=None),
        block=block,
        before=before if is_record else None,
        taken=tuple(starts[i] for i in block.taken),
    )


def _without_opening(hits: list[Signature], said: list[str], matcher: Matcher) -> list[Signature]:
    """Without consequences that only a line tells behind which the traceback opens, or that of the process at the other end of a call."""
    below = "\n".join(text for text in said if START not in text and not REMOTE.search(text)).encode("utf-8", "replace")
    told = {h.signature.id for h in matcher.match_block(below)}
    return [h for h in hits if h.effect != "cascade" or h.id in told]


def _is_quoted(text: str, matcher: Matcher) -> bool:
    """Does a sentence only quote what it matches?"""
    plain, quotes = SAID_OF_ANOTHER.sub(" ", text), "\n".join(found[0] for found in SAID_OF_ANOTHER.finditer(text))
    return bool(quotes) and not _knows(plain, matcher) and _knows(quotes, matcher)


def _knows(text: str, matcher: Matcher) -> bool:
    return any(True for _ in matcher.match_block(text.encode("utf-8", "replace")))


def _quotes_output(window: Window, start: int, end: int) -> bool:
    """Is the traceback in a line the output of another program, a value among others? An object that is a record itself quotes nobody."""
    raw = window.text[start:end]
    return _QUOTED_START.search(raw) is not None and window.head(raw.decode("utf-8", "replace")).level not in ("E", "F") and not raw.startswith(b"{")


def _is_of_an_end(window: Window, one: Spotted) -> bool:
    """Is it something that the end of a run brings about also where all went well: others go, helpers are told to end, threads are left?"""
    if one.block is not None:
        return window.line_before(one.start).text.startswith("Exception in thread ")
    return (one.signature is not None and one.signature.effect == "cascade") or (one.signature is None and "SIGTERM" in one.text)


def _was_finished(window: Window, one: Spotted) -> bool:
    before = (
        window.head(line.decode("utf-8", "replace")).text
        for line in window.text[max(0, one.start - LOOK_BACK_BYTES) : one.start].split(b"\n")[-LINES_BACK:]
    )
    return any(FINISHED.search(text) and judge(text, None) is None for text in before)


def _is_same_record(after: Head, first: Head) -> bool:
    """Is it one more line of an error's record, for each of which a logger repeats its head, as torch's do?

    Only a stamp finer than a second tells: in one second there are several records.
    """
    is_fine = first.time_s is not None and first.time_s % 1 != 0
    return is_fine and first.level == "E" and (after.level, after.time_s) == (first.level, first.time_s)


def _is_next_record(after: Head, before: Head) -> bool:
    return after.level in ("D", "I") and (after.time_s is None) == (before.time_s is None)


def _handled(window: Window, one: Spotted) -> str | None:
    """Words beside a failure which say that its writer goes on: in its own line, in the record of a traceback, or soon after."""
    if one.block is None and (words := goes_on(one.head.text)) is not None:
        return words
    if is_in_sample(window, one.head.writer, one.start, one.end):
        return "text that a model was asked or gave"
    if one.block is None and "Exception ignored" in window.line_before(one.start).text:
        return "ignored"
    if one.block is not None and _TRACKER.match(one.block.frame or ""):
        return "Python's tracker of shared memory caught it"
    if one.block is not None and window.line_before(one.start).text == "--- Logging error ---":
        return "a line could not be logged"
    if _is_of_an_end(window, one) and _was_finished(window, one):
        return "the work was done before"
    if one.before is not None:
        if "Exception ignored" in one.before.text:
            return "ignored"
        if one.before.text.startswith(_AT_EXIT):
            return "of the program's own end"
        if (words := goes_on(one.before.text)) is not None:
            return words
    own = one.block.message if one.block is not None else ()
    written = 0
    is_tool = SMALL_TOOL.match(one.head.text) is not None or (one.head.writer.program in _SHELLS and one.kind == "error")
    is_step = one.block is None and one.signature is None and is_tool
    # A record at level error reports; it ends nothing when more records of its writer follow, none of which tells of trouble.
    is_report = one.kind == "error" and one.signature is None and one.head.level == "E"
    is_told = False
    for after in window.next_of(one.head.writer, one.end):
        if one.before is not None and one.before.level in ("D", "I", "W") and _is_next_record(after, one.before):
            # An uncaught error prints its traceback behind any line, too; but then no more lines come, or those of a launcher that ends the rest.
            return None if GIVES_UP.search(after.text) else "logged as a note or a warning, and it wrote on"
        if is_step and SMALL_TOOL.match(after.text):
            continue
        if after.text.startswith("Exception ignored in"):
            continue  # that is ignored, not what came before
        if _is_same_record(after, one.head):
            if (words := goes_on(after.text)) is not None:
                return words
            continue
        if START in after.text or judge(after.text, after.level) is not None:
            return None
        if is_step and after.text:
            return "a tool complained, and the script went on"
        if (one.block is not None or one.kind == "error") and (answer := _ANSWERED.search(after.text)) is not None:
            return f"a server's request, and it answered {answer['status']}"
        written += bool(after.text)
        is_told = is_told or (
            is_report and (after.level in ("D", "I") or (after.level is None and after.time_s is not None and one.head.time_s is not None))
        )
        if is_told and (GIVES_UP.search(after.text) or _ENDS.search(after.text)):
            return None
        if one.block is not None and one.block.ran_text and written >= WROTE_ON:
            return "code that the program was given as text, and the program wrote on"
        if (after.text not in own or RETRIES.match(after.text)) and (words := goes_on(after.text, behind=True)) is not None:
            return words
    return "logged as an error, and it wrote on as before" if is_told else None
