"""Engines that hold requests and give no token, told by the line of figures that vLLM writes every ten seconds."""

from __future__ import annotations

import re

from ray_rl_debug.logs.ending import Marks, lines_back
from ray_rl_debug.logs.heads import Head, read_head
from ray_rl_debug.logs.named import filled
from ray_rl_debug.model.snapshot.log_book import LogStill, LogWriter

_WORDS = (b"generation throughput: ",)
_FIGURES = re.compile(
    rb"(?:\bEngine (?P<engine>\d{1,6}): )?Avg prompt throughput: (?P<prompt>[\d.]{1,20}) tokens/s, "
    rb"Avg generation throughput: (?P<given>[\d.]{1,20}) tokens/s, Running: (?P<running>\d{1,9}) reqs,"
    rb"(?: Swapped: \d{1,9} reqs,)? (?:Waiting|Pending): (?P<waiting>\d{1,9}) reqs"
)
_NOTHING = re.compile(rb"0*\.?0*")
MIN_LINES = 3
"""In a row; one may fall between two long steps."""
MAX_LINES = 2000
"""Read for figures, from the end back."""
MAX_ENGINES = 64


class _Row:
    """Lines of one engine, read from the last one back."""

    def __init__(self, last: int, found: re.Match[bytes]) -> None:
        self.last, self.found = last, found
        self.first, self.lines = last, 1


def read_stills(text: bytes, *, lines_before: int, writer: LogWriter, near_s: float | None) -> tuple[LogStill, ...]:
    """Engines whose last lines in the end of a file all tell of requests that run and of no token.

    Args:
        lines_before: Lines of the file before `text`.
        writer: Of lines that name none.
    """
    rows: dict[tuple[bytes, bytes | None], _Row] = {}
    ended: set[tuple[bytes, bytes | None]] = set()
    marks = Marks()
    for start, end in lines_back(text, _WORDS, most=MAX_LINES):
        found = _FIGURES.search(text, start, min(end, start + 2000))
        if found is None:
            continue
        key = (marks.of(text[start:end]), found["engine"])
        if key in ended or (key not in rows and len(rows) >= MAX_ENGINES):
            continue
        if not int(found["running"]) or not _NOTHING.fullmatch(found["given"]) or not _NOTHING.fullmatch(found["prompt"]):
            ended.add(key)
        elif key in rows:
            rows[key].first, rows[key].lines = start, rows[key].lines + 1
        else:
            rows[key] = _Row(start, found)
    return tuple(_still(row, text, lines_before, writer, near_s) for row in rows.values() if row.lines >= MIN_LINES)


def _still(row: _Row, text: bytes, lines_before: int, writer: LogWriter, near_s: float | None) -> LogStill:
    first, last = _head(text, row.first, near_s), _head(text, row.last, near_s)
    number = lines_before + text.count(b"\n", 0, row.first) + 1
    return LogStill(
        writer=filled(last.writer, writer),
        engine=row.found["engine"].decode() if row.found["engine"] is not None else None,
        running=int(row.found["running"]),
        waiting=int(row.found["waiting"]),
        lines=row.lines,
        file_line=number,
        last_line=number + text.count(b"\n", row.first, row.last),
        since_s=first.time_s,
        until_s=last.time_s,
        is_zoned=last.is_zoned,
    )


def _head(text: bytes, start: int, near_s: float | None) -> Head:
    return read_head(text[start : start + 2000].split(b"\n", 1)[0].decode("utf-8", "replace"), near_s=near_s)
