"""Engines that hold requests and give no token, told by the line of figures that vLLM writes every ten seconds."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ray_rl_debug.logs.heads import read_head
from ray_rl_debug.logs.named import filled
from ray_rl_debug.model.snapshot.log_book import LogStill, LogWriter

_WORDS = b"generation throughput: "
_FIGURES = re.compile(
    r"(?:\bEngine (?P<engine>\d{1,6}): )?Avg prompt throughput: (?P<prompt>[\d.]{1,20}) tokens/s, "
    r"Avg generation throughput: (?P<given>[\d.]{1,20}) tokens/s, Running: (?P<running>\d{1,9}) reqs,"
    r"(?: Swapped: \d{1,9} reqs,)? (?:Waiting|Pending): (?P<waiting>\d{1,9}) reqs"
)
MIN_LINES = 3
"""In a row; one may fall between two long steps."""
MAX_LINES = 2000
"""From the end back."""
MAX_ENGINES = 64


def read_stills(text: bytes, *, lines_before: int, writer: LogWriter, near_s: float | None) -> tuple[LogStill, ...]:
    """Engines whose last lines in the end of a file all tell of requests that run and of no token.

    Args:
        lines_before: Lines of the file before `text`.
        writer: Of lines that name none.
    """
    last: dict[tuple[LogWriter, str | None], LogStill | None] = {}
    number, counted = lines_before + 1, 0
    for start, end in _lines(text):
        head = read_head(text[start : min(end, start + 2000)].decode("utf-8", "replace"), near_s=near_s)
        found = _FIGURES.search(head.text)
        if found is None:
            continue
        number += text.count(b"\n", counted, start)
        counted = start
        key = (filled(head.writer, writer), found["engine"])
        if len(last) >= MAX_ENGINES and key not in last:
            continue
        is_still = int(found["running"]) > 0 and not float(found["given"]) and not float(found["prompt"])
        before = last.get(key)
        if not is_still:
            last[key] = None
            continue
        now = LogStill(
            writer=key[0],
            engine=found["engine"],
            running=int(found["running"]),
            waiting=int(found["waiting"]),
            lines=1,
            file_line=number,
            last_line=number,
            since_s=head.time_s,
            until_s=head.time_s,
            is_zoned=head.is_zoned,
        )
        if before is not None:
            now = msgspec.structs.replace(now, lines=before.lines + 1, file_line=before.file_line, since_s=before.since_s)
        last[key] = now
    return tuple(one for one in last.values() if one is not None and one.lines >= MIN_LINES)


def _lines(text: bytes) -> Iterator[tuple[int, int]]:
    """Lines with the words, in their order, the last ones of them."""
    found: list[tuple[int, int]] = []
    at = text.rfind(_WORDS)
    while at != -1 and len(found) < MAX_LINES:
        start = text.rfind(b"\n", 0, at) + 1
        end = text.find(b"\n", at)
        found.append((start, len(text) if end == -1 else end))
        at = text.rfind(_WORDS, 0, start)
    return reversed(found)
