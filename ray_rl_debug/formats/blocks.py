"""Documents of other tools inside a text: JSON in a fenced block, an answer of NCCL RAS between sentences."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator

from ray_rl_debug.formats.nccl_ras import is_ras

_FENCE = re.compile(rb"^[ >]{0,8}(?:```|~~~)", re.MULTILINE)
_LIST = re.compile(rb"^\[\s{0,80}\{\s{0,80}\"", re.MULTILINE)
_LIST_END = re.compile(rb"^\]|\}\][ \t\r]{0,80}$", re.MULTILINE)
_QUOTE = re.compile(rb"^ {0,3}> ?", re.MULTILINE)
MAX_BLOCKS = 1000
_FLIGHT = re.compile(rb'"(?:pg_config|pg_status|collective_seq_id)"')
_OBJECT = re.compile(rb"^(?P<head>[^\n{}]{0,60})(?P<open>\{)[ \t\r]{0,80}(?:\n[ \t]{0,80})?\"", re.MULTILINE)
_RANK = re.compile(rb"(?i)\brank[ _#:=]{0,3}(\d{1,6})\b")
MOST_IN_VAIN = 16
"""Objects that begin within each other and are cut off are each read to the end of the text: no more than so many times its length in all."""
NEAR_BYTES = 64 << 10
"""Its first fields stand so near to its beginning."""
HEAD_BYTES = 400
"""Before a document, in which its name is looked for."""


def documents(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each such document with its line, from 1."""
    taken = set()
    for line, start, block in _fenced(data):
        taken.add(start)
        yield line, _with_rank(block, data, start) if _FLIGHT.search(block) else block
    if b'"frames"' in data:
        yield from _lists(data, taken)
    if b'"entries"' in data and _FLIGHT.search(data):
        yield from _flights(data, taken)


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


def _flights(data: bytes, taken: set[int]) -> Iterator[tuple[int, bytes]]:
    """Dumps of the Flight Recorder below or behind a name (``rank 0:``)."""
    decoder, text = json.JSONDecoder(), data.decode("latin-1")  # a character for each byte: places are the same in both
    line, last, until, in_vain = 1, 0, 0, 0
    for opened in itertools.islice(_OBJECT.finditer(data), MAX_BLOCKS):
        start = opened.start("open")
        if start < until or not _FLIGHT.search(data, start, start + NEAR_BYTES):
            continue
        try:
            _, until = decoder.raw_decode(text, start)
        except json.JSONDecodeError as e:  # cut off
            in_vain += e.pos - start
            if in_vain > MOST_IN_VAIN * len(data):
                return
            continue
        except (ValueError, RecursionError):
            continue
        line += data.count(b"\n", last, start)
        last = start
        if start not in taken:
            yield line, _with_rank(data[start:until], data, start)


def _with_rank(block: bytes, data: bytes, start: int) -> bytes:
    """A dump that begins at a place; one that does not tell its rank gets that of the words before it, in its line or the last one above."""
    before = data[max(0, start - HEAD_BYTES) : start].split(b"\n")
    told = [text for text in before if text.strip() and not _FENCE.match(text)][-1:]
    named = _RANK.search(told[0]) if told and block.startswith(b"{") else None
    # Of two equal keys the last counts: the dump's own.
    return b'{"rank": ' + named[1] + b", " + block[1:].lstrip() if named is not None else block


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
