"""One log, read once from its beginning in blocks, in bounded memory → `LogBook`."""

from __future__ import annotations

import functools
import re
from collections import deque

from ray_rl_debug.logs.ending import read_ending
from ray_rl_debug.logs.engine_lines import read_stills
from ray_rl_debug.logs.events import NCCL_WARNS, shape_of, spot
from ray_rl_debug.logs.heads import read_head
from ray_rl_debug.logs.ledger import Ledger
from ray_rl_debug.logs.named import filled, writer_of_file
from ray_rl_debug.logs.running import read_calls
from ray_rl_debug.logs.search import Searcher
from ray_rl_debug.logs.sections import Sections, has_sections
from ray_rl_debug.logs.shapes import DIGITS
from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.stamps import AHEAD_S, YEAR_S, find_stamp
from ray_rl_debug.logs.tracebacks import START
from ray_rl_debug.logs.window import LOOK_AHEAD_BYTES, LOOK_BACK_BYTES, Window, common_writer
from ray_rl_debug.logs.words import STEMS
from ray_rl_debug.model.snapshot.log_book import LogBook, LogWriter
from ray_rl_debug.privacy.redact import redact
from ray_rl_debug.signatures.match import MAX_LINE_CHARS, Matcher

BLOCK_BYTES = 1 << 20
"""Small enough for the processor's own memory."""
KEPT_BYTES = 4 << 20
"""Of the end, where the last steps are looked for."""
OPEN_BYTES = 64 << 10
"""Of the end of what is read of a block: a traceback that begins there is read with the next block."""
MAX_REST_BYTES = 8 << 20
"""A line may be so long, or a traceback; what is longer is read in parts."""
HEADED_LINES = 20
"""Of the beginning, by which a log is known."""
MAX_KINDS = 50_000
"""Shapes of failures that are remembered: those of one program are few."""
_ZERO = re.compile(rb"(?<![\d.:,])0(?!\.?\d)")
_START = START.encode()
_ERROR = b"Error: "
"""Such a line may tell nothing only because of the line above it."""


def _has_head(line: str) -> bool:
    head = read_head(line)
    return head.level is not None or head.writer != LogWriter()


@functools.cache
def tools() -> tuple[Matcher, Searcher]:
    """All signatures, and the search for lines that may hold one or tell of a failure."""
    matcher = Matcher()
    return matcher, Searcher([*(s.encode() for s in STEMS), *matcher.literals])


class BookReader:
    """Takes the blocks of one file one after the other."""

    def __init__(self, path: str, *, modified_time_s: float | None, use: tuple[Matcher, Searcher] | None = None) -> None:
        self._matcher, self._searcher = use or tools()
        self._file = redact(path)
        self._writer = self._section = writer_of_file(path)
        self._has_sections = False
        self._common: LogWriter | None = None
        self._is_headed = False
        self._modified_s = self._near_s = modified_time_s
        self._rest = b""
        self._kept: deque[tuple[bytes, int]] = deque()
        self._before = b""
        self._lines = self._bytes = 0
        self._first_s: float | None = None
        self._is_zoned = False
        self._ledger = Ledger(self._matcher, self._writer, modified_time_s)
        self._known = self._searcher.known
        self._kinds: dict[bytes, str] = {}
        """Of failures that were read: the kind, by the shape of their line."""

    def feed(self, data: bytes) -> None:
        """The next bytes of the file; never empty."""
        if self._bytes == 0:
            self._beginning(data)
        self._bytes += len(data)
        data = self._rest + data if self._rest else data
        whole = data.rfind(b"\n") + 1
        # What stands behind a failure tells whether it was survived: the last lines are read with the next block.
        upto = data.rfind(b"\n", 0, max(0, whole - LOOK_AHEAD_BYTES)) + 1
        opened = data.find(_START, max(0, upto - OPEN_BYTES), upto)
        if opened != -1:
            upto = data.rfind(b"\n", 0, opened) + 1
            upto = data.rfind(b"\n", 0, max(0, upto - 1)) + 1  # with the line before it, which may name its level
        if len(data) - upto > MAX_REST_BYTES:
            upto = whole or len(data)
        self._rest = data[upto:]
        self._take(data, upto)

    def end(self) -> LogBook:
        """What was read; the reader is used up."""
        self._take(self._rest, len(self._rest))
        kept = b"".join(block[:upto] for block, upto in self._kept)[-KEPT_BYTES:]
        before = self._lines - kept.count(b"\n")
        ending = read_ending(kept, lines_before=before, writer=self._writer, near_s=self._near_s)
        return LogBook(
            file=self._file,
            node=self._writer.node,
            writer=self._writer,
            bytes=self._bytes,
            lines=self._lines + (1 if kept and not kept.endswith(b"\n") else 0),
            modified_time_s=self._modified_s,
            first_time_s=self._first_s,
            last_time_s=ending.time_s if ending.time_s is not None else self._first_s,
            is_zoned=self._is_zoned,
            events=self._ledger.events(),
            steps=ending.steps,
            signs=ending.signs,
            stills=read_stills(kept, lines_before=before, writer=self._writer, near_s=self._near_s),
            calls=read_calls(kept, lines_before=before, writer=self._writer),
            left_out=self._ledger.left_out,
        )

    @property
    def is_log(self) -> bool:
        """Do its first lines look as programs write them: with a time, a level or a name of the writer?"""
        return self._first_s is not None or self._is_headed

    def _beginning(self, data: bytes) -> None:
        self._has_sections = has_sections(data)
        for raw in data[:LOOK_BACK_BYTES].split(b"\n"):
            dated = find_stamp(raw[:400].decode("utf-8", "replace"), near_s=None)
            if dated is not None:
                # A log that was copied long after, or by a wrong clock: stamps without a year are of the run that began then.
                within_s = dated.time_s + YEAR_S - 2 * AHEAD_S
                self._near_s = self._near_s if self._near_s is not None and dated.time_s <= self._near_s <= within_s else within_s
                break
        self._common = common_writer(data[:LOOK_BACK_BYTES].rpartition(b"\n")[0] if len(data) > LOOK_BACK_BYTES else data, near_s=self._near_s)
        self._ledger.common = self._common
        begin = data[:LOOK_BACK_BYTES].split(b"\n")
        self._is_headed = any(_has_head(raw[:400].decode("utf-8", "replace")) for raw in begin[:HEADED_LINES])
        for raw in begin:
            stamp = find_stamp(raw[:400].decode("utf-8", "replace"), near_s=self._near_s)
            if stamp is not None:
                self._first_s, self._is_zoned = stamp.time_s, stamp.is_zoned
                return

    def _take(self, block: bytes, upto: int) -> None:
        """Read the lines that begin before a place; what stands behind it is looked at only."""
        if not upto:
            return
        window = Window(block, before=self._before, near_s=self._near_s, common=self._common)
        sections = Sections(block if self._has_sections else b"", self._section)
        consumed: set[int] = set()
        found, ended = self._searcher.search(block)
        for before, start, end in found:
            if start >= upto:
                break
            if start in consumed:
                continue
            raw = block[start : min(end, start + MAX_LINE_CHARS)]
            shape = raw.translate(None, DIGITS)
            is_short = end - start <= MAX_LINE_CHARS
            number = self._lines + before + 1
            if is_short and shape in self._known.shapes:
                continue
            kind = self._kinds.get(shape) if is_short else None
            writer = sections.writer_at(start)
            if kind and self._repeated(kind, raw, number, window, start, end, writer):
                continue
            one = spot(window, start, end, self._matcher, writer)
            if one is not None:
                consumed.update(one.taken)
                self._ledger.add(one, window, number)
            if is_short and (one is None or one.block is None) and self._is_of_its_shape(raw, one is None):
                self._remember(shape, one)
        self._section = sections.writer_at(upto - 1)
        self._lines += ended - block.count(b"\n", upto)
        self._before = block[max(0, upto - LOOK_BACK_BYTES) : upto]
        self._kept.append((block, upto))
        while sum(size for _, size in self._kept) - self._kept[0][1] >= KEPT_BYTES:
            self._kept.popleft()

    def _remember(self, shape: bytes, one: Spotted | None) -> None:
        if one is None:
            self._known.add((shape,), len(shape))
            self._kinds.pop(shape, None)
            return
        if len(self._kinds) >= MAX_KINDS:
            self._kinds.clear()
        self._kinds[shape] = one.kind

    def _is_of_its_shape(self, raw: bytes, is_nothing: bool) -> bool:
        """Do all lines that differ from this one in their digits alone say the same? No errors are not three errors."""
        if _START in raw or NCCL_WARNS in raw or self._matcher.depends_on_digits(raw):
            return False
        if not is_nothing or (not _ZERO.search(raw) and _ERROR not in raw):
            return True
        other = _ZERO.sub(b"1", raw)
        return spot(Window(other, near_s=self._near_s), 0, len(other), self._matcher, self._writer) is None

    def _repeated(self, kind: str, raw: bytes, number: int, window: Window, start: int, end: int, writer: LogWriter) -> bool:
        """Count a line whose shape is known; False when its writer has not written one yet."""
        head = window.head(raw.decode("utf-8", "replace"))
        key = (kind, filled(window.whole(head.writer), writer), shape_of(head.text))
        return self._ledger.knows(key, number, window, start, end)
