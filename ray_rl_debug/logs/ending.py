"""The end of a log: the last step of each writer, and each writer's last line."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence

import msgspec

from ray_rl_debug.logs.heads import Head, read_head
from ray_rl_debug.logs.named import filled
from ray_rl_debug.logs.shapes import DIGITS
from ray_rl_debug.logs.stamps import find_stamp
from ray_rl_debug.logs.steps import read_step
from ray_rl_debug.model.snapshot.log_book import LogSign, LogStep, LogWriter
from ray_rl_debug.privacy.redact import redact

LINES_BACK = 3
"""Of one writer that are read for its last line and that line's time."""
SIGN_BYTES = 32 << 10
"""Of the end in which each writer's last line is looked for."""
PIECE_BYTES = 64 << 10
"""Searched in one go, the last first."""
MAX_CANDIDATES = 400
"""Lines with a word of progress that are read, from the last one back."""
STEPS_OF_WRITER = 6
MAX_WRITERS = 512
MARK_BYTES = 64
"""Of the beginning of a line, in which its writer is named."""
_MARK = re.compile(
    rb"\bpid=\d+(?:, ?ip=[\w.:]+)?|\[(?:rank|default|Rank )\d+\]|(?:\b(?:DP|TP|PP|EP|CP)\d+ ?)+|[\w.-]+:\d+:\d+ \[\d+|^[\w.-]+[-_]\d+ +\||^ ?\d+: "
)
"""A writer as most programs name it: lines with the same mark have one writer. Where it knows no mark, all lines are read."""
_OF_MARKS = (b"pid=", b"[", b" |", b"P0", b"0: ")
"""One of them is in every mark, with zeros for digits: a look for them takes far less than the search."""
_AS_ZEROS = bytes.maketrans(DIGITS, b"0" * len(DIGITS))
_WORDS = (b"step", b"Step", b"STEP", b"iter", b"Iter", b"poch", b"it/s", b"s/it", b"/s]", b"ound ", b"pdate", b"version", b"pisode")


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """What the end of a log tells."""

    steps: tuple[LogStep, ...]
    signs: tuple[LogSign, ...]
    time_s: float | None
    """Of the last line with a stamp."""


def read_ending(text: bytes, *, lines_before: int, writer: LogWriter, near_s: float | None) -> Ending:
    """Read the last bytes of a file.

    Args:
        lines_before: Lines of the file before `text`.
        writer: Of lines that name none.
    """
    steps = _steps(text, lines_before, writer, near_s)
    signs = _signs(text, lines_before, writer, near_s)
    return Ending(steps=steps, signs=signs, time_s=_last_time(text, near_s))


def _steps(text: bytes, lines_before: int, writer: LogWriter, near_s: float | None) -> tuple[LogStep, ...]:
    kept: dict[tuple[object, ...], deque[LogStep]] = {}
    counted, number = len(text), lines_before + text.count(b"\n") + 1
    met: Counter[tuple[bytes, bytes]] = Counter()
    marks = Marks()
    borrowed = set[tuple[LogWriter, str, float | None]]()
    for start, end in _candidates(text):
        raw = text[start : min(end, start + 2 * MARK_BYTES)]
        like = (marks.of(raw), raw.translate(None, DIGITS))
        met[like] += 1
        if met[like] > STEPS_OF_WRITER:
            continue  # lines that differ in their digits alone say the same: so many of this writer were read
        head = read_head(text[start : min(end, start + 4000)].decode("utf-8", "replace"), near_s=near_s)
        done = read_step(head.text)
        if done is None or head.level in ("E", "F"):
            continue
        who = filled(head.writer, writer)
        held = kept.setdefault((who, done[1]), deque())
        if len(held) >= STEPS_OF_WRITER or len(kept) > MAX_WRITERS:
            continue
        time_s, zoned = (head.time_s, head.is_zoned) if head.time_s is not None else _time_before(text, start, near_s)
        if head.time_s is None:
            # One stamp above several steps is of none of them.
            same = (who, done[1], time_s)
            if same in borrowed:
                held = kept[who, done[1]] = deque(msgspec.structs.replace(s, time_s=None) if s.time_s == time_s else s for s in held)
                time_s = None
            borrowed.add(same)
        number -= text.count(b"\n", start, counted)
        counted = start
        held.appendleft(LogStep(step=done[0], unit=done[1], file_line=number, writer=who, time_s=time_s, is_zoned=zoned))
    return tuple(sorted((s for held in kept.values() for s in held), key=lambda s: s.file_line))


def _candidates(text: bytes) -> list[tuple[int, int]]:
    """Lines with a word of progress, the last first; a progress bar's parts count as lines."""
    found: set[tuple[int, int]] = set()
    stop = len(text)
    while stop > 0 and len(found) < MAX_CANDIDATES:
        begin = text.rfind(b"\n", 0, max(0, stop - PIECE_BYTES)) + 1
        for word in _WORDS:
            at = text.find(word, begin, stop)
            while at != -1:
                start = text.rfind(b"\n", begin, at) + 1 or begin
                start = max(start, text.rfind(b"\r", start, at) + 1)
                end = text.find(b"\n", at)
                end = len(text) if end == -1 else end
                again = text.find(b"\r", at, end)
                end = end if again == -1 else again
                found.add((start, end))
                at = text.find(word, end, stop)
        stop = begin
    return sorted(found, reverse=True)[:MAX_CANDIDATES]


def _signs(text: bytes, lines_before: int, writer: LogWriter, near_s: float | None) -> tuple[LogSign, ...]:
    begin = max(0, len(text) - SIGN_BYTES)
    begin = text.find(b"\n", begin) + 1 if begin else 0
    rows = text[begin:].split(b"\n")
    marked: defaultdict[bytes, list[int]] = defaultdict(list)
    marks = Marks()
    for position, raw in enumerate(rows):
        if raw and not raw.isspace():
            marked[marks.of(raw)].append(position)
    last: dict[LogWriter, tuple[int, Head]] = {}
    for positions in sorted(marked.values(), key=lambda p: p[-1]):
        found = _last_of(rows, positions, near_s)
        if found is not None and positions is marked.get(b"") and found[1].writer != LogWriter():
            # Their marks are of another kind: only reading tells whose they are.
            last.update({head.writer: (at, head) for at in positions if (head := _head(rows[at], near_s)).text})
        elif found is not None:
            last[found[1].writer] = found
    number = lines_before + text.count(b"\n", 0, begin) + 1
    told = sorted(last.items(), key=lambda one: one[1][0])[-MAX_WRITERS:]
    return tuple(
        LogSign(
            writer=filled(who, writer), file_line=number + line, text=redact(head.text, max_chars=160), time_s=head.time_s, is_zoned=head.is_zoned
        )
        for who, (line, head) in told
    )


def lines_back(text: bytes, words: Sequence[bytes], *, most: int) -> Iterator[tuple[int, int]]:
    """Where the lines with one of the words begin and end, the last one first; at most so many."""
    last = {word: text.rfind(word) for word in words}
    for _ in range(most):
        word, at = max(last.items(), key=lambda pair: pair[1])
        if at == -1:
            return
        start, end = text.rfind(b"\n", 0, at) + 1, text.find(b"\n", at)
        yield start, len(text) if end == -1 else end
        last[word] = text.rfind(word, 0, start)


class Marks:
    """What names the writer of a line; empty where nothing of these kinds does.

    No mark depends on which digits it holds: it stands at the same place of all lines whose beginnings differ in their digits alone.
    """

    def __init__(self) -> None:
        self._places: dict[bytes, tuple[int, int]] = {}

    def of(self, raw: bytes) -> bytes:
        shape = raw[:MARK_BYTES].translate(_AS_ZEROS)
        place = self._places.get(shape)
        if place is None:
            found = _MARK.search(shape) if any(one in shape for one in _OF_MARKS) else None
            place = self._places[shape] = found.span() if found is not None else (0, 0)
        return raw[place[0] : place[1]]


def _head(raw: bytes, near_s: float | None) -> Head:
    return read_head(raw[:2000].decode("utf-8", "replace"), near_s=near_s)


def _last_of(rows: Sequence[bytes], positions: Sequence[int], near_s: float | None) -> tuple[int, Head] | None:
    """The last line of one writer, with the time of the nearest of its lines before that has one."""
    last: tuple[int, Head] | None = None
    for at in positions[: -1 - LINES_BACK : -1]:
        head = _head(rows[at], near_s)
        if last is None and head.text:
            last = (at, head)
        if last is not None and head.time_s is not None:
            return last[0], msgspec.structs.replace(last[1], time_s=head.time_s, is_zoned=head.is_zoned)
    return last


def _time_before(text: bytes, start: int, near_s: float | None) -> tuple[float | None, bool]:
    for raw in text[max(0, start - (8 << 10)) : start].split(b"\n")[::-1]:
        if raw and (stamp := find_stamp(raw[:400].decode("utf-8", "replace"), near_s=near_s)) is not None:
            return stamp.time_s, stamp.is_zoned
    return None, False


def _last_time(text: bytes, near_s: float | None) -> float | None:
    for raw in text[-(64 << 10) :].split(b"\n")[::-1]:
        if raw and (stamp := find_stamp(raw[:400].decode("utf-8", "replace"), near_s=near_s)) is not None:
            return stamp.time_s
    return None
