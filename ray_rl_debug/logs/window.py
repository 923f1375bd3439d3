"""A piece of a log around the line that is read: what stands before it and what its writer says next."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ray_rl_debug.logs.heads import COLOUR, Head, read_head
from ray_rl_debug.logs.json_lines import plain_behind_marks
from ray_rl_debug.logs.named import is_one_process
from ray_rl_debug.logs.sections import is_header
from ray_rl_debug.logs.stamps import find_stamp
from ray_rl_debug.logs.steps import read_step
from ray_rl_debug.logs.tracebacks import START
from ray_rl_debug.logs.words import NOT_THE_JOB
from ray_rl_debug.model.snapshot.log_book import LogWriter
from ray_rl_debug.signatures.match import MAX_LINE_CHARS

_NUMBER = re.compile(r"\d")
_AT = re.compile(rb"\b(?:CANCELLED AT|(?:failed|died|ended|exited|crashed|killed|terminated) (?:at|on)) (?=(?:19|20)\d\d[-/]\d\d[-/]\d\d[T ]\d\d:)")
LOOK_BACK_BYTES = 32 << 10
LOOK_AHEAD_BYTES = 16 << 10
HEADING_BYTES = 2 << 10
FIRST_LINES = 200
STAMP_LINES = 40
"""So far below a stamp a line without one may have been written much later, and so may one behind `STAMP_STEPS` counts of work."""
STAMP_STEPS = 2
AFTER = 10
"""Lines of the same writer that are read behind a failure."""
LONG_CHARS = 16 * MAX_LINE_CHARS


def common_writer(beginning: bytes, *, near_s: float | None = None) -> LogWriter | None:
    """What the marks of all lines say of their writer, as in the log of one Ray actor or rank; None where they share no process or machine."""
    common: LogWriter | None = None
    for raw in beginning.split(b"\n", FIRST_LINES)[:FIRST_LINES]:
        line = COLOUR.sub("", raw[:400].decode("utf-8", "replace"))
        if not line.strip():
            continue
        writer = read_head(line, near_s=near_s).writer
        if writer.program is not None and not line.startswith(("(", "[")) and (writer.pid is None or NOT_THE_JOB.fullmatch(writer.program)):
            return None  # a tool that names itself, or a service of the machine
        common = writer if common is None else _shared(common, writer)
        if (common.pid, common.rank, common.node) == (None, None, None):
            return None
    return common


def _shared(a: LogWriter, b: LogWriter) -> LogWriter:
    return LogWriter(
        node=a.node if a.node == b.node else None,
        ip=a.ip if a.ip == b.ip else None,
        pid=a.pid if a.pid == b.pid else None,
        rank=a.rank if a.rank == b.rank else None,
        program=a.program if a.program == b.program else None,
    )


def _without(writer: LogWriter, common: LogWriter) -> LogWriter:
    """Of a line's writer what its own marks say, beyond those that all lines share."""
    return LogWriter(
        node=None if writer.node == common.node else writer.node,
        ip=None if writer.ip == common.ip else writer.ip,
        pid=None if writer.pid == common.pid else writer.pid,
        rank=None if writer.rank == common.rank else writer.rank,
        program=None if writer.program == common.program else writer.program,
    )


def _is_one(a: LogWriter, b: LogWriter) -> bool:
    """Is it one writer? Of a program that names itself, such as ``(raylet)``, not each line has the number of its process."""
    if is_one_process(a, b):
        return True
    return a.program is not None and a.program == b.program and a.rank == b.rank and None in (a.pid, b.pid)


class Stamped(msgspec.Struct, frozen=True):
    """The time of a line, as far as it or what stands above it tells."""

    time_s: float | None = None
    is_zoned: bool = False
    is_old: bool = False
    """Of a line far above, or with work counted since."""


class Window:
    """Whole lines of a log."""

    def __init__(self, text: bytes, *, before: bytes = b"", near_s: float | None = None, common: LogWriter | None = None) -> None:
        """`before` are the bytes of the log in front of `text`, `near_s` a time near them, `common` whom the marks of all lines name."""
        self.text = text
        self._before = before
        self._near_s = near_s
        self._common = common

    def head(self, text: str) -> Head:
        """One line without the marks in front of it."""
        head = read_head(text, near_s=self._near_s)
        if self._common is None:
            return head
        return msgspec.structs.replace(head, writer=_without(head.writer, self._common))

    def whole(self, writer: LogWriter) -> LogWriter:
        """The writer that a head of this log names, with what the marks of all lines say."""
        if self._common is None:
            return writer
        known = {name: value for name in LogWriter.__struct_fields__ if (value := getattr(writer, name)) is not None}
        return msgspec.structs.replace(self._common, **known)

    def line(self, start: int, end: int) -> bytes:
        """A line; of a very long one both ends."""
        if end - start <= LONG_CHARS:
            return self.text[start:end]
        return self.text[start : start + LONG_CHARS // 2] + self.text[end - LONG_CHARS // 2 : end]

    def line_before(self, start: int) -> Head:
        """The line in front of one that begins at `start`."""
        if start <= 0:
            return self.head("")
        begin = self.text.rfind(b"\n", 0, start - 1) + 1
        return self.head(self.text[max(begin, start - MAX_LINE_CHARS) : start - 1].decode("utf-8", "replace"))

    def heading(self, start: int, indent: int) -> str:
        """The nearest line above that is indented less than a line that begins at `start`; empty where none is near."""
        for raw in self.text[max(0, start - HEADING_BYTES) : start].split(b"\n")[-2::-1]:
            head = self.head(raw[:400].decode("utf-8", "replace"))
            if head.text and head.indent < indent:
                return head.text
        return ""

    def time_in(self, start: int, end: int) -> Stamped:
        """Of a line that tells in its words when something happened, ``CANCELLED AT 2026-…``; else of what stands before it."""
        found = _AT.search(self.text, start, min(end, start + MAX_LINE_CHARS))
        told = find_stamp(self.text[found.end() : end].decode("utf-8", "replace"), near_s=self._near_s, within=40) if found is not None else None
        return Stamped(told.time_s, told.is_zoned) if told is not None else self.time_before(start)

    def time_before(self, start: int) -> Stamped:
        """Of the nearest line before `start` that has a stamp."""
        text = self.text[max(0, start - LOOK_BACK_BYTES) : start]
        if len(text) < LOOK_BACK_BYTES:
            text = self._before[-(LOOK_BACK_BYTES - len(text)) :] + text
        counts = set[tuple[float, str]]()
        for back, raw in enumerate(text.split(b"\n")[::-1]):
            line = raw[:400].decode("utf-8", "replace")
            if raw and (stamp := find_stamp(line, near_s=self._near_s)) is not None:
                return Stamped(stamp.time_s, stamp.is_zoned, is_old=back > STAMP_LINES or len(counts) >= STAMP_STEPS)
            if len(counts) < STAMP_STEPS and back <= STAMP_LINES and (done := read_step(line)) is not None:
                counts.add(done)
        return Stamped()

    def next_of(self, writer: LogWriter, end: int, *, anybody: bool = False) -> Iterator[Head]:
        """The next lines of a writer, or of `anybody`, behind the line that ends at `end`."""
        given = 0
        for at, text in self.lines_from(end + 1):
            if is_header(text):
                return
            one = self.head(text)
            if anybody or _is_one(one.writer, writer) or one.writer == LogWriter():
                yield one
                given += 1
            if given >= AFTER or at > end + LOOK_AHEAD_BYTES:
                return

    def block_from(self, start: int) -> Iterator[tuple[int, Head]]:
        """Lines from one with a traceback's first words on, each with where it begins; one with spelled-out line ends is several.

        A mark that nobody knows, in front of these words, is taken off the other lines as well.
        """
        mark: str | None = None
        for at, head in self._heads_from(start):
            if mark is None:
                mark = _NUMBER.sub("0", head.text[: max(0, head.text.find(START))])
            elif mark and _NUMBER.sub("0", head.text[: len(mark)]) == mark:
                rest = head.text[len(mark) :]
                head = msgspec.structs.replace(head, text=rest.lstrip(" \t"), indent=len(rest) - len(rest.lstrip(" \t")))
            yield at, head

    def _heads_from(self, start: int) -> Iterator[tuple[int, Head]]:
        for at, text in self.lines_from(start, limit=LONG_CHARS):
            whole = (plain_behind_marks(text.rstrip()) or text) if START in text and "\\n" in text else ""
            if "\\n" in whole[whole.find(START) :]:
                marks = whole[: len(whole) - len(self.head(whole).text)]
                for part in whole[whole.find(START) :].replace('\\"', '"').split("\\n"):
                    yield at, self.head(marks + part)
            else:
                yield at, self.head(text[:MAX_LINE_CHARS])

    def lines_from(self, start: int, *, limit: int = MAX_LINE_CHARS) -> Iterator[tuple[int, str]]:
        """Lines from a place on, with where they begin, each cut to `limit`."""
        at = start
        while at < len(self.text):
            end = self.text.find(b"\n", at)
            end = len(self.text) if end == -1 else end
            yield at, self.text[at : min(end, at + limit)].decode("utf-8", "replace")
            at = end + 1
