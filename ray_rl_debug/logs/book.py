"""One log, read once from its beginning in blocks, in bounded memory → `LogBook`."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import msgspec

from ray_rl_debug.logs.ending import read_ending
from ray_rl_debug.logs.heads import Head, read_head
from ray_rl_debug.logs.json_lines import plain_line
from ray_rl_debug.logs.named import filled, named_in, writer_of_file
from ray_rl_debug.logs.search import Searcher
from ray_rl_debug.logs.stamps import find_stamp
from ray_rl_debug.logs.tracebacks import START, Block, read_block
from ray_rl_debug.logs.words import STEMS, Said, goes_on, judge
from ray_rl_debug.model.snapshot.log_book import LogBook, LogEvent, LogWriter
from ray_rl_debug.privacy.redact import redact
from ray_rl_debug.signatures import EFFECTS, Signature
from ray_rl_debug.signatures.match import MAX_LINE_CHARS, Matcher

BLOCK_BYTES = 4 << 20
KEPT_BYTES = 4 << 20
"""Of the end, where the last steps are looked for."""
OPEN_BYTES = 64 << 10
"""Of the end of a block: a traceback that begins there is read with the next block."""
MAX_REST_BYTES = 8 << 20
"""A line may be so long, or a traceback; what is longer is read in parts."""
LOOK_BACK_BYTES = 32 << 10
MAX_EVENTS = 120
"""Different ones kept of one file, the first; later ones are counted."""
MAX_TEMPLATES = 50_000
"""Shapes of lines that hold nothing: those of one program are few."""
_AFTER = 10
_DIGITS = b"0123456789"
_START = START.encode()


@functools.cache
def _tools() -> tuple[Matcher, Searcher]:
    matcher = Matcher()
    return matcher, Searcher([*(s.encode() for s in STEMS), *matcher.literals])


class BookReader:
    """Takes the blocks of one file one after the other."""

    def __init__(self, path: str, *, modified_time_s: float | None, tools: tuple[Matcher, Searcher] | None = None) -> None:
        self._matcher, self._searcher = tools or _tools()
        self._file = redact(path)
        self._writer = writer_of_file(path)
        self._near_s = modified_time_s
        self._rest = b""
        self._kept: list[bytes] = []
        self._before = b""
        self._lines = self._bytes = self._left_out = 0
        self._first_s: float | None = None
        self._is_zoned = False
        self._events: dict[tuple[object, ...], LogEvent] = {}
        self._dull: set[bytes] = set()

    def feed(self, data: bytes) -> None:
        """The next bytes of the file; never empty."""
        if self._bytes == 0:
            self._beginning(data)
        self._bytes += len(data)
        data = self._rest + data if self._rest else data
        cut = data.rfind(b"\n") + 1
        opened = data.find(_START, max(0, cut - OPEN_BYTES), cut)
        if opened != -1:
            cut = data.rfind(b"\n", 0, opened) + 1
            cut = max(0, data.rfind(b"\n", 0, max(0, cut - 1)) + 1)  # with the line before it, which may name its level
        if len(data) - cut > MAX_REST_BYTES:
            cut = len(data)
        self._rest = data[cut:]
        self._take(data[:cut] if self._rest else data)

    def end(self) -> LogBook:
        """What was read; the reader is used up."""
        self._take(self._rest)
        kept = b"".join(self._kept)[-KEPT_BYTES:]
        ending = read_ending(kept, lines_before=self._lines - kept.count(b"\n"), writer=self._writer, near_s=self._near_s)
        return LogBook(
            file=self._file,
            node=self._writer.node,
            writer=self._writer,
            bytes=self._bytes,
            lines=self._lines + (1 if kept and not kept.endswith(b"\n") else 0),
            modified_time_s=self._near_s,
            first_time_s=self._first_s,
            last_time_s=ending.time_s if ending.time_s is not None else self._first_s,
            is_zoned=self._is_zoned,
            events=tuple(self._events.values()),
            steps=ending.steps,
            signs=ending.signs,
            left_out=self._left_out,
        )

    def _beginning(self, data: bytes) -> None:
        for raw in data[:LOOK_BACK_BYTES].split(b"\n"):
            stamp = find_stamp(raw[:400].decode("utf-8", "replace"), near_s=self._near_s)
            if stamp is not None:
                self._first_s, self._is_zoned = stamp.time_s, stamp.is_zoned
                return

    def _take(self, whole: bytes) -> None:
        if not whole:
            return
        consumed: set[int] = set()
        counted, line = 0, self._lines
        for start, end in self._searcher.lines(whole):
            if start in consumed:
                continue
            raw = whole[start : min(end, start + MAX_LINE_CHARS)]
            template = raw.translate(None, _DIGITS)
            if template in self._dull and end - start <= MAX_LINE_CHARS:
                continue
            line += whole.count(b"\n", counted, start)
            counted = start
            if not self._read(whole, start, end, line + 1, consumed) and not self._matcher.depends_on_digits(raw) and b"0" not in raw:
                if len(self._dull) >= MAX_TEMPLATES:
                    self._dull.clear()
                self._dull.add(template)
        self._lines = line + whole.count(b"\n", counted)
        self._before = whole[-LOOK_BACK_BYTES:]
        self._kept.append(whole)
        while len(self._kept) > 1 and sum(map(len, self._kept[1:])) >= KEPT_BYTES:
            self._kept.pop(0)

    def _read(self, whole: bytes, start: int, end: int, number: int, consumed: set[int]) -> bool:
        """Read one line that the search found; False when lines of its shape hold nothing, whatever their numbers."""
        at_start = whole.find(_START, start, end)
        if at_start != -1:
            block, after = self._traceback(whole, start, consumed)
            if block is not None:
                self._add_traceback(block, whole, start, after, number)
            return True
        raw = _cut(whole, start, end)
        text = raw.decode("utf-8", "replace")
        hits = list(self._matcher.match_block(raw))
        signature = min((h.signature for h in hits), key=_severity, default=None)
        head = read_head(text, near_s=self._near_s)
        said = judge(head.text, head.level)
        if signature is None and said is None:
            return False
        if signature is not None and said is None and signature.effect == "info":
            said = Said("known")
        kind = "known" if said is None else "error" if said.kind == "exception" else said.kind
        shown = next((h.text for h in hits if h.signature is signature), head.text) if len(head.text) > 400 or not said else head.text
        about = named_in(head.text)
        handled = goes_on(head.text) or self._handled(whole, end, head, ())
        self._add(
            kind, shown, whole, start, number, head, signature, about, handled=handled, level=head.level, lines=self._following(whole, end, head)
        )
        return True

    def _traceback(self, whole: bytes, start: int, consumed: set[int]) -> tuple[Block | None, int]:
        """The traceback that begins in a line, and where its last line begins."""
        starts: list[int] = []

        def heads() -> Iterator[Head]:
            for at, text in _lines_from(whole, start, START):
                starts.append(at)
                yield read_head(text, near_s=self._near_s)

        block = read_block(heads())
        if block is not None:
            consumed.update(starts[i] for i in block.taken)
            return block, starts[block.taken[-1]]
        return None, start

    def _add_traceback(self, block: Block, whole: bytes, start: int, last: int, number: int) -> None:
        head = block.head
        before = read_head(_line_before(whole, start), near_s=self._near_s)
        is_record = before.level is not None and head.level is None and head.time_s is None
        level = head.level or (before.level if is_record else None)
        said = [block.last, *([block.first] if block.first else []), *block.message]
        hits = [h.signature for h in self._matcher.match_block("\n".join([*said, *block.lines[-60:]]).encode("utf-8", "replace"))]
        signature = min(hits, key=_severity, default=None)
        text = block.last or "a traceback that is cut off before its last line"
        handled = None
        if "Exception ignored" in before.text or is_record:
            handled = "ignored" if "Exception ignored" in before.text else goes_on(before.text)
        if handled is None:
            end = whole.find(b"\n", last)
            handled = self._handled(whole, len(whole) if end == -1 else end, head, block.message)
        about = named_in(text, block.message) or (named_in(block.first) if block.first else None)
        shown = head if head.time_s is not None or not is_record else before
        named = head if head.writer != LogWriter() else before
        who = Head(writer=named.writer, text=text, level=level, time_s=shown.time_s, is_zoned=shown.is_zoned)
        lines = tuple(redact(x) for x in (*block.lines[:1], *block.lines[-5:], *block.message[:3]))
        self._add("traceback", text, whole, start, number, who, signature, about, handled=handled, level=level, block=block, lines=lines)

    def _add(
        self,
        kind: str,
        text: str,
        whole: bytes,
        start: int,
        number: int,
        head: Head,
        signature: Signature | None,
        about: LogWriter | None,
        *,
        handled: str | None,
        level: str | None,
        block: Block | None = None,
        lines: tuple[str, ...] = (),
    ) -> None:
        writer = filled(head.writer, self._writer)
        shown = redact(text)
        shape = "".join(c for c in shown if not c.isdigit())[:160]
        key = (kind, writer.pid, writer.rank, writer.program, writer.node, shape, block.frame if block else None, handled is None)
        known = self._events.get(key)
        if known is not None:
            self._events[key] = msgspec.structs.replace(known, count=known.count + 1, last_line=number)
            return
        if len(self._events) >= MAX_EVENTS:
            self._left_out += 1
            return
        time_s, zoned = (head.time_s, head.is_zoned) if head.time_s is not None else self._time_before(whole, start)
        self._events[key] = LogEvent(
            kind=kind,
            text=shown,
            file_line=number,
            writer=writer,
            about=about,
            time_s=time_s,
            is_time_own=head.time_s is not None,
            is_zoned=zoned,
            signature=signature.id if signature else None,
            level=level,
            beneath=redact(block.first) if block and block.first else None,
            frame=redact(block.frame) if block and block.frame else None,
            lines=lines,
            handled=handled,
        )

    def _time_before(self, whole: bytes, start: int) -> tuple[float | None, bool]:
        """Of the nearest line before that has a stamp."""
        text = whole[max(0, start - LOOK_BACK_BYTES) : start]
        if len(text) < LOOK_BACK_BYTES:
            text = self._before[-(LOOK_BACK_BYTES - len(text)) :] + text
        for raw in text.split(b"\n")[::-1]:
            if raw and (stamp := find_stamp(raw[:400].decode("utf-8", "replace"), near_s=self._near_s)) is not None:
                return stamp.time_s, stamp.is_zoned
        return None, False

    def _handled(self, whole: bytes, end: int, head: Head, own: tuple[str, ...]) -> str | None:
        """Words of the same writer, soon after, that it goes on."""
        for after in self._next_heads(whole, end, head):
            if START in after.text or judge(after.text, after.level) is not None:
                return None
            if after.text not in own and (words := goes_on(after.text, behind=True)) is not None:
                return words
        return None

    def _following(self, whole: bytes, end: int, head: Head) -> tuple[str, ...]:
        """The next two lines of the writer, which often end the sentence."""
        return tuple(redact(h.text) for h in list(self._next_heads(whole, end, head))[:2] if h.text and h.time_s is None)

    def _next_heads(self, whole: bytes, end: int, head: Head) -> Iterator[Head]:
        given = 0
        for at, text in _lines_from(whole, end + 1, None):
            one = read_head(text, near_s=self._near_s)
            if (one.writer.pid, one.writer.rank) == (head.writer.pid, head.writer.rank) or one.writer == LogWriter():
                yield one
                given += 1
            if given >= _AFTER or at > end + (16 << 10):
                return


def _severity(signature: Signature) -> tuple[int, int, str]:
    return EFFECTS.index(signature.effect), len(signature.id), signature.id


def _cut(whole: bytes, start: int, end: int) -> bytes:
    return (
        whole[start:end] if end - start <= 16 * MAX_LINE_CHARS else whole[start : start + 8 * MAX_LINE_CHARS] + whole[end - 8 * MAX_LINE_CHARS : end]
    )


def _line_before(whole: bytes, start: int) -> str:
    if start <= 0:
        return ""
    begin = whole.rfind(b"\n", 0, start - 1) + 1
    return whole[max(begin, start - MAX_LINE_CHARS) : start - 1].decode("utf-8", "replace")


def _lines_from(whole: bytes, start: int, packed: str | None) -> Iterator[tuple[int, str]]:
    """Lines from a place on, with where they begin; a line that holds `packed` and spelled-out line ends is several."""
    at = start
    while at < len(whole):
        end = whole.find(b"\n", at)
        end = len(whole) if end == -1 else end
        text = whole[at : min(end, at + 16 * MAX_LINE_CHARS)].decode("utf-8", "replace")
        if packed is not None and packed in text and "\\n" in text:
            text = plain_line(text.rstrip()) or text
            marks = text[: len(text) - len(read_head(text).text)]
            for part in text[text.find(packed) :].replace('\\"', '"').split("\\n"):
                yield at, marks + part
        else:
            yield at, text[:MAX_LINE_CHARS]
        at = end + 1
