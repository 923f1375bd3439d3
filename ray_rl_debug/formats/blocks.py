"""Documents of other tools inside a text: JSON in a fenced block, an answer of NCCL RAS between sentences."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from ray_rl_debug.formats.nccl_ras import is_ras

_FENCE = re.compile(rb"^[ >]{0,8}(?:```|~~~)", re.MULTILINE)
_LIST = re.compile(rb"^\[\s{0,80}\{\s{0,80}\"", re.MULTILINE)
_LIST_END = re.compile(rb"^\]|\}\][ \t\r]{0,80}$", re.MULTILINE)
_QUOTE = re.compile(rb"^ {0,3}> ?", re.MULTILINE)
MAX_BLOCKS = 1000


def documents(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each such document with its line, from 1."""
    taken = set()
    for line, start, block in _fenced(data):
        taken.add(start)
        yield line, block
    if b'"frames"' in data:
        yield from _lists(data, taken)


def _lists(data: bytes, taken: set[int]) -> Iterator[tuple[int, bytes]]:
    """What ``py-spy dump --json`` printed below a prompt, one list after the other; none of those that begin at `taken` places."""
    line, last, until = 1, 0, 0
    for begun in itertools.islice(_LIST.finditer(data), MAX_BLOCKS):
        if begun.start() < until:
            continue
        end = _LIST_END.search(data, begun.end())
        if end is None:
            return
        until = end.end()
        line += data.count(b"\n", last, begun.start())
        last = begun.start()
        if last not in taken:
            yield line, data[last:until]


def _fenced(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Line, place and text of documents in fenced blocks."""
    # One byte is found far faster than three equal ones.
    if not (b"`" in data and b"```" in data) and not (b"~" in data and b"~~~" in data):
        return
    line, last, opened = 1, 0, None
    for count, fence in enumerate(_FENCE.finditer(data)):
        if count > 2 * MAX_BLOCKS:
            return
        line += data.count(b"\n", last, fence.start())
        last = fence.start()
        if opened is None:
            opened = (line, data.find(b"\n", fence.end()))
            continue
        begun, start = opened
        opened = None
        block = data[start:last].strip() if 0 <= start < last else b""
        place = data.find(block[:1], start) if block else start
        if block.startswith(b">"):
            block = _QUOTE.sub(b"", block)
        if block[:1] in (b"{", b"[") or is_ras(block):
            yield begun + 1, place, block
