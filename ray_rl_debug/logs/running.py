"""The last collectives of each rank, where NCCL (``NCCL_DEBUG_SUBSYS=COLL``) or torch's ``ProcessGroupWrapper`` logs every one."""

from __future__ import annotations

import math
import re

from ray_rl_debug.logs.ending import MAX_WRITERS, Marks, lines_back
from ray_rl_debug.logs.heads import read_head
from ray_rl_debug.logs.named import filled
from ray_rl_debug.model.snapshot.log_book import LogCall, LogCollective, LogWriter

_WORDS = (b": opCount ", b"Running collective: ")
_OF_NCCL = re.compile(
    rb"NCCL INFO (?P<op>All(?:Reduce|Gather|ToAll)|Broadcast|Reduce(?:Scatter)?): opCount (?P<number>[\da-f]{1,12}) [^\n]{0,200}?"
    rb"\bcount (?P<elements>\d{1,18}) [^\n]{0,200}?\bcomm (?P<comm>0x[\da-f]{1,16}) \[nranks=(?P<members>\d{1,7})\]"
)
_OF_TORCH = re.compile(
    rb"Running collective: CollectiveFingerPrint\(SequenceNumber=(?P<number>\d{1,15})(?:, )?OpType=(?P<op>\w{1,60})"
    rb"(?:, TensorShape=\[(?P<shape>[\d, ]{0,200})\])?"
)
"""Torch 2.0 and older leave the comma out where a collective has no tensor."""
MAX_LINES = 4000
"""Read for calls, from the end back."""
CALLS_OF_WRITER = 8


class _Calls:
    """The last calls of one writer, the last one first."""

    def __init__(self) -> None:
        self.held: list[tuple[int, re.Match[bytes]]] = []
        self.is_one_group = True

    def before(self, start: int, found: re.Match[bytes]) -> None:
        """A call before those. Numbers of several communicators do not compare, nor one that stands still (NCCL 2.27 on one machine)."""
        if len(self.held) == CALLS_OF_WRITER:
            return
        if self.held:
            later = self.held[-1][1].groupdict()
            is_same = later.get("comm") == found.groupdict().get("comm") and later.get("members") == found.groupdict().get("members")
            self.is_one_group = self.is_one_group and is_same and _number(later) == _number(found.groupdict()) + 1
        self.held.append((start, found))


def read_calls(text: bytes, *, lines_before: int, writer: LogWriter) -> tuple[LogCall, ...]:
    """The last calls of each writer in the end of a file, in its order; nothing of a writer whose calls are not of one group.

    Args:
        lines_before: Lines of the file before `text`.
        writer: Of lines that name none.
    """
    rows: dict[bytes, _Calls] = {}
    marks = Marks()
    for start, end in lines_back(text, _WORDS, most=MAX_LINES):
        found = _OF_NCCL.search(text, start, min(end, start + 2000)) or _OF_TORCH.search(text, start, min(end, start + 2000))
        mark = marks.of(text[start:end]) if found is not None else b""
        if found is not None and (mark in rows or len(rows) < MAX_WRITERS):
            rows.setdefault(mark, _Calls()).before(start, found)
    calls = []
    number, counted = lines_before + 1, 0
    for start, found in sorted((one for row in rows.values() if row.is_one_group for one in row.held), key=lambda one: one[0]):
        number, counted = number + text.count(b"\n", counted, start), start
        line = text[start : start + 2000].split(b"\n", 1)[0].decode("utf-8", "replace")
        calls.append(_call(found, filled(read_head(line).writer, writer), number))
    return tuple(calls)


def _call(found: re.Match[bytes], writer: LogWriter, file_line: int) -> LogCall:
    told = found.groupdict()
    sizes = [int(n) for n in (told.get("shape") or b"").split(b",") if n.strip()]
    elements = int(told["elements"]) if "comm" in told else math.prod(sizes) if sizes else None
    return LogCall(
        writer=writer,
        told=LogCollective(seq=_number(told), op=told["op"].decode(), elements=elements),
        number=told["number"].decode(),
        members=int(told["members"]) if "comm" in told else None,
        file_line=file_line,
    )


def _number(told: dict[str, bytes]) -> int:
    return int(told["number"], 16 if "comm" in told else 10)
