"""One place of a log → what failed there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from ray_rl_debug.logs.above import is_of_error_above, note_above, of_record_above, out_of_panel, record_of_java
from ray_rl_debug.logs.aside import OF_A_HELPER
from ray_rl_debug.logs.bare import is_bare
from ray_rl_debug.logs.collectives import read_collective
from ray_rl_debug.logs.ends import GIVES_UP, gives_up
from ray_rl_debug.logs.followed import is_after_work, is_followed
from ray_rl_debug.logs.handled import AT_EXIT, handled
from ray_rl_debug.logs.heads import Head
from ray_rl_debug.logs.kinds import is_own_words
from ray_rl_debug.logs.named import LOADER, described_in, filled, introduced_by, launched_in, named_in
from ray_rl_debug.logs.quoted import is_in_prompt, is_quoted, plain_record, quotes_output
from ray_rl_debug.logs.shapes import without_digits
from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.tracebacks import FRAME, REMOTE, RESULT, START, Block, frame_text, read_block
from ray_rl_debug.logs.values import is_printed_value
from ray_rl_debug.logs.window import LOOK_BACK_BYTES, Stamped, Window
from ray_rl_debug.logs.words import ANY_NAME, ENDED_WELL, EXCEPTION, NOT_THE_JOB, OF_A_SAMPLE, Said, judge
from ray_rl_debug.model.snapshot.log_book import LogEvent, LogWriter
from ray_rl_debug.privacy.redact import redact
from ray_rl_debug.signatures import EFFECTS, Signature
from ray_rl_debug.signatures.match import Matcher

_FIELDS_OF_DESCRIBE = ("Reason:", "Exit Code:", "Message:", "Warning  ")
_OF_ITS_END = re.compile(r"(?:exitcode|traceback)\s*: (?!To enable )\S")
"""In torchrun's report of a process that failed."""
_SOURCE_IN_C = re.compile(r"\.(?:cc|cpp|cu|h|c):\d")
"""A logger of C++ prints no traceback of Python's."""
_LAST_FIELD = re.compile(r"traceback\s*: ")
FIELDS_ABOVE = 5
"""In torchrun's report of a rank, before its traceback."""
MAX_FIELDS = 14
MAX_OF_FRAME = 4
"""Lines of a frame: its place, its code, and Python's marks below that."""
MAX_OBJECTS = 3
"""Lines that asyncio puts between its record and the traceback."""
OF_ASYNCIO = re.compile(r"(?:handle|future|task|protocol|transport|context|client_session|connector|source_traceback): ?<")
NCCL_WARNS = b"NCCL WARN"
_FAILED_AT = re.compile(r"^NCCL INFO \S{1,120}:\d+ -> (?:[1-689]|\d\d)\b")
"""How NCCL tells, function by function, that a call failed; 7 is a call that is still in progress."""
_SAYS_WHAT = re.compile(
    r"(?:An? )?(?:\w+ )?(?:[Ee]rror|[Ee]xception|[Ff]ail(?:ed|ure)|[Uu]nable|[Cc]ould not|[Cc]annot)\b(?! executing job)[ \w'`\"()/.-]{4,120}[.:!]?$"
)
"""A sentence of a program that caught an exception, right above the traceback that it prints; not Hydra's, which ends by it."""
_NOTES_FAILURE = re.compile(r"\b(?i:error|fail(?:ed|ure|s)?|exception)\b")
_BEHIND_WORDS = re.compile(rf"(?!ray::)[\[(\w].{{0,200}}[:=>] ?{re.escape(START)}")
"""So a program writes what it holds: Python begins a line with what nobody caught."""
_SAYS_BEHIND = re.compile(
    r"(?:[Ee]rror|[Ee]xception|[Ff]ailure) (?:in|at|during|while|when|on|from|\w+ing)\b(?! job)|(?:[Ff]ailed|[Uu]nable) to \w|[Cc]ould not \w"
)
MIN_SAID = 3
"""Letters of a message that two lines hardly share by chance."""
_BEGINS_FRAMES = re.compile(rb"(?:[^\n]{0,80}[ \t]\^{2,80}[ \t]*\r?\n)?[^\n]{0,160}?File \"")
"""Below Ray's line of a call; Python's marks may stand in between, of a caller whose frames were left out."""
_IMPORT = re.compile(r"(?:ModuleNotFound|Import)Error: ")
"""Raised inside a function: most packages try such imports of what they can do without."""
_CUT = "a traceback that is cut off before its last line"


def spot(window: Window, start: int, end: int, matcher: Matcher, writer: LogWriter) -> Spotted | None:
    """What failed in a line, or in the traceback that begins there; None when nothing did."""
    if window.text.find(START.encode(), start, end) != -1 and not quotes_output(window, start, end):
        text = window.head(window.line(start, end).decode("utf-8", "replace")).text
        if OF_A_SAMPLE.match(text) and not text.rstrip(":").endswith(START):
            return None  # all of it stands in this line
        found = _spot_traceback(window, start, matcher, writer)
        if found is not None:
            return found
    if b"() (pid=" in window.text[start:end] and _BEGINS_FRAMES.match(window.text, end + 1):
        return _spot_traceback(window, start, matcher, writer)
    raw = plain_record(window.line(start, end))
    head = out_of_panel(window, window.head(raw.decode("utf-8", "replace")), start)
    if OF_A_SAMPLE.match(head.text) or (head.level in (None, "D", "I") and is_printed_value(head.text, matcher.match_block)):
        return None
    if (above := record_of_java(window, head, start, end) or note_above(window, head, start)) is not None:
        head = msgspec.structs.replace(head, level=above.level, source=above.source)
    if RESULT.match(head.text) and is_of_error_above(window, head, start):
        return None
    head = of_record_above(window, head, start)
    hits = [h for h in matcher.match_block(raw) if head.level in ("E", "F") or not is_in_prompt(h)]
    signature = min((h.signature for h in hits), key=severity, default=None)
    said = judge(head.text, head.level if above is None else None)
    if said is None and signature is None and NCCL_WARNS in raw and _failed_in_nccl(window, head, end):
        said = Said("error")
    if said is None:
        if signature is None or ENDED_WELL.search(head.text) or (head.level in (None, "D", "I") and is_quoted(head.text, matcher)):
            return None
        said = Said("known")
    if signature is None and _is_of_the_machine(head, said.kind):
        return None
    if said.kind == "error" and signature is None and (below := _traceback_below(window, end)) is not None:
        # The record of a traceback; the traceback says more.
        return _spot_traceback(window, below, matcher, writer)
    kind = "error" if said.kind == "exception" else said.kind
    cut = next((h.text for h in hits if h.signature is signature), head.text)
    text = cut if said.kind == "known" or len(head.text) > 400 else head.text
    who = filled(window.whole(head.writer), writer)
    return Spotted((kind, who, shape_of(head.text)), kind, head, text, start, end, who, signature)


def as_event(window: Window, one: Spotted, number: int) -> LogEvent:
    """The failure as a fact; `number` is its line."""
    block, head = one.block, one.head
    source = head if head.time_s is not None or one.before is None else one.before
    is_own = source.time_s is not None
    stamped = Stamped(source.time_s, source.is_zoned) if is_own else window.time_in(one.start, one.end)
    if block is not None:
        named = (block.remote, block.first, block.lines[0], *introduced_by(window.line_before(one.start).text))
        about = named_in(one.text, block.message) or next((who for text in named if text and (who := named_in(text)) is not None), None)
        about = about or _of_report_above(window, one, block)
        lines = (*(block.lines if len(block.lines) <= 6 else (*block.lines[:1], *block.lines[-5:])), *block.message[:3])
    else:
        after = [h.text for h in window.next_of(head.writer, one.end) if h.text and (not h.is_stamped or h.text.startswith("what():"))]
        about = (
            named_in(head.text, tuple(after[:8]))
            or _of_call_above(window, one)
            or launched_in(window.line(one.start, one.end).decode("utf-8", "replace"))
        )
        if about is None and head.indent and head.text.startswith(_FIELDS_OF_DESCRIBE):
            about = described_in(window.text[max(0, one.start - LOOK_BACK_BYTES) : one.start])
        lines = _telling(after)
    if about is not None and about.node is None and about.ip is None and one.writer.pid is None and one.writer.rank is None:
        about = msgspec.structs.replace(about, node=one.writer.node)
    if about is not None and about.program == LOADER:
        about = msgspec.structs.replace(about, rank=one.writer.rank)  # its parent tells it
    passed = handled(window, one)
    after_work = passed is None and is_after_work(window, one)
    return LogEvent(
        kind=one.kind,
        text=redact(one.text),
        file_line=number,
        text_line=_line_of_text(window, one, number),
        writer=one.writer,
        about=about,
        time_s=stamped.time_s,
        is_time_own=is_own,
        is_time_old=stamped.is_old,
        is_zoned=stamped.is_zoned,
        signature=one.signature.id if one.signature else None,
        level=head.level or (one.before.level if one.before is not None and one.before.level in ("E", "F") else None),
        record=redact(record) if block is not None and (record := _record_of(window, one)) else None,
        beneath=redact(raised) if (raised := block.first if block is not None else _raised_below(window, one)) else None,
        frame=redact(frame) if (frame := block.frame if block is not None else _frame_above(window, one)) else None,
        lines=tuple(redact(x) for x in lines),
        collective=read_collective(window.line(one.start, one.end).decode("utf-8", "replace")) if block is None else None,
        is_own_words=is_own_words(one) and not gives_up(one.text),
        caught=_caught(window, one),
        is_bare=passed is None and is_bare(window, one),
        is_followed=after_work or (passed is None and is_followed(window, one)),
        is_after_work=after_work,
        handled=passed,
    )


def _telling(after: Sequence[str]) -> tuple[str, ...]:
    """Of the lines behind an error's first one those that say more, in front how a launcher's report says that the process ended."""
    said = [text for text in after if any(map(str.isalnum, text))]
    return tuple(dict.fromkeys([*(text for text in said[:MAX_FIELDS] if _OF_ITS_END.match(text)), *said[:2]]))


def _frame_above(window: Window, one: Spotted) -> str | None:
    """Of an exception whose traceback somebody pasted without its first line, the innermost frame."""
    if EXCEPTION.match(one.head.text) is None:
        return None
    at = one.start
    for _ in range(MAX_OF_FRAME):
        above = window.line_before(at)
        if (found := FRAME.match(above.text)) is not None:
            return frame_text(found["file"], found["line"], found["function"] or "?")
        if above.indent == 0:
            return None
        at = window.text.rfind(b"\n", 0, at - 1) + 1
    return None


def _of_report_above(window: Window, one: Spotted, block: Block) -> LogWriter | None:
    """Of a traceback that torchrun's report of a rank ends with, the rank that the fields above name."""
    if _LAST_FIELD.match(block.lines[0]) is None:
        return None
    rows = window.text[max(0, one.start - LOOK_BACK_BYTES) : one.start].split(b"\n")[-FIELDS_ABOVE - 1 : -1]
    return named_in("", tuple(window.head(row.decode("utf-8", "replace")).text for row in rows))


def _of_call_above(window: Window, one: Spotted) -> LogWriter | None:
    """Of an exception right below Ray's line of a call that failed, without any frames, the process that Ray's line names."""
    above = window.line_before(one.start)
    is_below = EXCEPTION.match(one.head.text) is not None and above.writer == one.head.writer and REMOTE.search(above.text) is not None
    return named_in(above.text) if is_below else None


def _record_of(window: Window, one: Spotted) -> str | None:
    """Words of the record that a traceback belongs to, also where its logger repeats the head on each line; a sentence at no level is one as well."""
    if one.before is not None:
        return one.before.text
    above = _record_before(window, one.start)
    if (above.level, above.writer) != (one.head.level, one.head.writer):
        return None
    is_record = one.head.level is not None or _SAYS_WHAT.match(above.text) or (one.block is not None and _tells_of(above, one.block))
    return above.text if is_record else None


def _tells_of(above: Head, block: Block) -> bool:
    """Did a program say, before the traceback, what it holds? Python has no words in front of one that nobody catches."""
    if EXCEPTION.match(above.text):
        return False
    if above.is_stamped and not block.head.is_stamped and _NOTES_FAILURE.search(above.text):
        return True
    found = ANY_NAME.match(block.last)
    said = (found["said"] or "") if found is not None else ""
    return len(said) >= MIN_SAID and len(said) < len(above.text) and above.text.endswith(said)


def _says_so_behind(window: Window, one: Spotted) -> bool:
    """Does the program put what it caught into words right behind the traceback that it printed?"""
    after = next((h for h in window.next_of(one.head.writer, one.end) if h.text), None)
    if after is None or (after.level, after.writer) != (None, one.head.writer) or GIVES_UP.search(after.text):
        return False
    return _SAYS_BEHIND.match(after.text) is not None


def _caught(window: Window, one: Spotted) -> bool | None:
    block, level = one.block, one.head.level or (one.before.level if one.before is not None else None)
    if block is not None and block.ran_text and block.is_caught is not False:
        return True  # whoever gave Python the code as text, or wrote it into a folder for passing files, looks at how it ends
    if block is not None and block.remote is None and (_BEHIND_WORDS.match(block.lines[0]) or _is_of_a_guest(block, one.writer)):
        return True
    if block is None or block.is_caught is None:
        return None
    if block.is_caught:
        was_tried = level is None and block.remote is None and _IMPORT.match(one.text) is not None
        is_bare = level is None and block.remote is None
        is_written_down = level in ("D", "W", "E") or (is_bare and (_record_of(window, one) is not None or _says_so_behind(window, one)))
        return True if is_written_down or was_tried else None
    return False if level is None and one.before is None else None


def _is_of_a_guest(block: Block, writer: LogWriter) -> bool:
    """Is it of a program in a folder of its own, below an actor of Ray's? Ray runs actors by files with their whole paths."""
    file = block.begins_in or ""
    return block.is_caught is False and writer.program is not None and writer.pid is not None and not file.startswith(("/", "<"))


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
    return without_digits(text[:400])[:160]


def _spot_traceback(window: Window, start: int, matcher: Matcher, writer: LogWriter) -> Spotted | None:
    starts: list[int] = []
    times: list[float | None] = []

    def heads_from() -> Iterator[Head]:
        for at, head in window.block_from(start):
            starts.append(at)
            times.append(head.time_s)
            yield head

    block = read_block(heads_from())
    if block is None:
        return None
    head = block.head
    is_collected = _is_collected([times[i] for i in block.taken])
    if is_collected:
        head = msgspec.structs.replace(head, level=None)
    before = _record_before(window, start)
    is_of_a_logger = before.level is not None and not is_collected and _SOURCE_IN_C.search(before.source or "") is None
    is_record = head.level is None and (is_of_a_logger or before.text.startswith(AT_EXIT) or "Exception ignored" in before.text)
    named = head if head.writer != LogWriter() or not is_record else before
    who = filled(window.whole(named.writer), writer)
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


def _is_collected(times: Sequence[float | None]) -> bool:
    """Has each line a time of its own? A logger has one for the whole record: whoever collects lines gave them these, and their level."""
    return None not in times and times[0] != times[-1] and len(set(times)) > len(times) // 2


def _is_of_the_machine(head: Head, kind: str) -> bool:
    """Did a service of the machine write it? A journal names the machine, a service alone no process; ``(search_agent pid=7)`` is an actor."""
    who = head.writer
    if OF_A_HELPER.match(head.text) or OF_A_HELPER.fullmatch(who.program or ""):
        return True  # it tells how its own tools end
    if who.program is None or (kind != "error" and not who.program.endswith(".service")):
        return False  # the kernel tells of the ends of others
    return NOT_THE_JOB.fullmatch(who.program) is not None and (who.node is not None or who.pid is None)


def _traceback_below(window: Window, end: int) -> int | None:
    """Where a traceback begins right below a line that ends at `end`, or below what asyncio says of the object in question."""
    for at, text in islice(window.lines_from(end + 1), 1 + MAX_OBJECTS):
        if START in text:
            return at
        if not OF_ASYNCIO.match(window.head(text).text):
            return None
    return None


def _failed_in_nccl(window: Window, head: Head, end: int) -> bool:
    """Did the call fail of which NCCL warns? Then its functions say so next, if it logs at all; most warnings are none of a failure."""
    return any(_FAILED_AT.match(after.text) for after in islice(window.next_of(head.writer, end), 3))


def _record_before(window: Window, start: int) -> Head:
    before = window.line_before(start)
    for _ in range(MAX_OBJECTS):
        if not OF_ASYNCIO.match(before.text):
            break
        start = window.text.rfind(b"\n", 0, start - 1) + 1
        before = window.line_before(start)
    return before


def _without_opening(hits: list[Signature], said: list[str], matcher: Matcher) -> list[Signature]:
    """Without consequences that only a line tells behind which the traceback opens, or that of the process at the other end of a call."""
    below = "\n".join(text for text in said if START not in text and not REMOTE.search(text)).encode("utf-8", "replace")
    told = {h.signature.id for h in matcher.match_block(below)}
    return [h for h in hits if h.effect != "cascade" or h.id in told]
