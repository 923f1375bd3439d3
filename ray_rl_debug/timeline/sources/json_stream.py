"""Objects of a large JSON file, one after the other, in bounded memory: an array, an object with ``traceEvents``, or one object per line.

A file that was cut off gives all that is whole and one sentence about the rest.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

CHUNK_CHARS = 1 << 18
MAX_HEAD_CHARS = 32 << 20
"""What may stand before the events of a profiler's trace: members of all process groups, thousands of ranks each."""
MAX_OBJECT_CHARS = 32 << 20
"""One event longer than this is no event."""

_EVENTS = re.compile(r'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder()


def open_text(path: Path) -> IO[str]:
    """The file as text, unpacked where it is gzipped."""
    with path.open("rb") as f:
        is_packed = f.read(2) == b"\x1f\x8b"
    if is_packed:
        return gzip.open(path, "rt", encoding="utf-8", errors="replace")
    return path.open(encoding="utf-8", errors="replace")


def read_objects(path: Path, trouble: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """The objects in the file; what cannot be used is told to `trouble` in one sentence per kind, and the rest goes on."""
    read = 0
    try:
        with open_text(path) as f:
            for found in _objects(f, trouble):
                read += 1
                yield found
    except (EOFError, zlib.error, gzip.BadGzipFile):
        trouble(f"cut off: the gzip data ends too early; {read:,} events before that were used")
    except OSError as e:
        trouble(f"cannot be read: {e.strerror or e}")


def read_head(path: Path, chars: int = 1 << 16) -> str:
    """The beginning of a file that may be gzipped; empty when it cannot be read."""
    try:
        with open_text(path) as f:
            return f.read(chars)
    except (OSError, EOFError, zlib.error):
        return ""


def _objects(f: IO[str], trouble: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    buffer = f.read(CHUNK_CHARS)
    at = _begin(buffer)
    while at is None and len(buffer) < MAX_HEAD_CHARS and not _is_lines(buffer) and (more := f.read(CHUNK_CHARS)):
        buffer += more
        at = _begin(buffer)
    if at is None:
        yield from _lines(buffer, f, trouble)
        return
    count = others = 0
    while True:
        found = _BETWEEN.match(buffer, at)
        at = found.end() if found else at
        if at < len(buffer) and buffer[at] == "]":
            break
        try:
            value, at = _DECODER.raw_decode(buffer, at)
        except json.JSONDecodeError:
            more = f.read(max(CHUNK_CHARS, len(buffer) - at))
            if not more or len(buffer) - at > MAX_OBJECT_CHARS:
                trouble(f"cut off or damaged after {count:,} events, which were used")
                return
            buffer, at = buffer[at:] + more, 0
            continue
        if isinstance(value, dict):
            count += 1
            yield value
        else:
            others += 1
        if at > CHUNK_CHARS:
            buffer, at = buffer[at:], 0
        if at >= len(buffer):
            buffer, at = f.read(CHUNK_CHARS), 0
            if not buffer:
                trouble(f"cut off after {count:,} events, which were used")
                return
    if others:
        trouble(f"{others:,} entries that are no events were left out")


def _begin(head: str) -> int | None:
    """Where the first event stands; None for a file with one object per line."""
    stripped = head.lstrip("\ufeff \t\r\n")
    if stripped.startswith("["):
        return head.index("[") + 1
    found = _EVENTS.search(head)
    return found.end() if found else None


def _is_lines(head: str) -> bool:
    """Does the first line hold a whole object?"""
    first = head.lstrip("\ufeff \t\r\n").split("\n", 1)[0]
    return isinstance(_decoded(first), dict)


def _lines(buffer: str, f: IO[str], trouble: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    bad = used = 0
    last_bad = False
    rest = buffer
    while rest:
        lines = rest.split("\n")
        tail = lines.pop()
        more = f.read(CHUNK_CHARS)
        if not more and tail:
            lines.append(tail)
            tail = ""
        for line in lines:
            if not line.strip():
                continue
            value = _decoded(line)
            last_bad = not isinstance(value, dict)
            if isinstance(value, dict):
                used += 1
                yield value
            else:
                bad += 1
        rest = tail + more
        if len(rest) > MAX_OBJECT_CHARS + CHUNK_CHARS:
            trouble("a line without end")
            return
    if bad == 1 and last_bad and used:
        trouble(f"the last line is cut off; the {used:,} before it were used")
    elif bad:
        trouble(f"{bad:,} of {bad + used:,} lines are damaged; the others were used")


def _decoded(line: str) -> object:
    """One line; None when it is damaged. Python's own decoder is slower but takes NaN, which some tools write."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError):
        pass
    try:
        return json.loads(line)
    except ValueError:
        return None


def as_number(value: object) -> float | None:
    """A finite number; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    number = float(value)
    return number if -1e18 < number < 1e18 else None


def unix_ns(seconds: float) -> int:
    """Nanoseconds of a Unix time, to the microsecond: a double holds no more today."""
    return round(seconds * 1e6) * 1000


def as_int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def plain_args(value: object, *, limit: int = 12) -> tuple[tuple[str, str | int | float | bool], ...]:
    """Arguments of an event that can be shown: plain values, texts cut, the first few."""
    if not isinstance(value, dict):
        return ()
    shown: list[tuple[str, str | int | float | bool]] = []
    for key, item in list(value.items())[:limit]:
        if isinstance(item, (bool, int, float)):
            shown.append((str(key), item))
        elif isinstance(item, str):
            shown.append((str(key), item[:300]))
    return tuple(shown)
