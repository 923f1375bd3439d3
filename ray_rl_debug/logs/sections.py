"""Logs of several files in one text: ``tail -f a b`` names the file above its lines, ``dshbak`` and ``clush -b`` the machine, a person the rank."""

from __future__ import annotations

import re
from bisect import bisect_right

from ray_rl_debug.logs.named import writer_of_file
from ray_rl_debug.model.snapshot.log_book import LogWriter

FIRST_BYTES = 64 << 10
"""Such a text begins with a header, or with little in front of it; to search all logs for headers would cost a third of their reading."""
_HEADER = re.compile(rb"^==> (?P<file>[^\n]{1,300}) <==\r?$|^-{15,}\n(?P<node>[\w.-]{1,100})\n-{15,}$", re.MULTILINE)
_FENCED = re.compile(
    rb"^[^\n]{0,120}?\branks? ?(?P<rank>\d{1,5})\b[^\n`]{0,80}"
    rb"\b(?:log|stderr|stdout|output|console)s?\b[^\n`]{0,60}\n(?:[ \t]{0,8}\n)?```[^\n]{0,30}\n",
    re.MULTILINE | re.IGNORECASE,
)
"""``Nothing of rank 3, its log ends with`` above lines that are quoted."""
_FENCE = b"\n```"


class Sections:
    """Whose lines stand where in one block."""

    def __init__(self, block: bytes, outer: LogWriter) -> None:
        """`outer` writes what stands in front of the first header."""
        self._starts: list[int] = []
        self._writers = [outer]
        for found in _HEADER.finditer(block):
            writer = _writer(found)
            if writer is not None:
                self._starts.append(found.start())
                self._writers.append(writer)
        for found in _FENCED.finditer(block) if not self._starts and _FENCE in block else ():
            if self._starts and found.start() < self._starts[-1]:
                continue
            end = block.find(_FENCE, found.end() - 1)
            self._starts += [found.end(), end if end >= 0 else len(block)]
            self._writers += [LogWriter(rank=found["rank"].decode()), outer]

    def writer_at(self, at: int) -> LogWriter:
        """Who wrote the line that begins there, if it names nobody."""
        return self._writers[bisect_right(self._starts, at)] if self._starts else self._writers[0]


def has_sections(beginning: bytes) -> bool:
    """Does a log begin as the logs of several files do?"""
    first = beginning[:FIRST_BYTES]
    if _FENCE in first and _FENCED.search(first) is not None:
        return True
    return (b"==> " in first or b"-" * 15 in first) and any(_writer(found) is not None for found in _HEADER.finditer(first))


def is_header(line: str) -> bool:
    """Do the lines of another file begin here?"""
    return line.startswith("==> ") and line.endswith((" <==", " <==\r"))


def _writer(found: re.Match[bytes]) -> LogWriter | None:
    name = (found["file"] or found["node"]).decode("utf-8", "replace")
    writer = writer_of_file(name)
    if found["node"]:
        return writer if writer.node is not None else None
    return writer if writer != LogWriter() else LogWriter(program=name.rsplit("/", 1)[-1])
