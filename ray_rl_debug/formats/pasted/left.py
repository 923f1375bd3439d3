"""Lines that look like frames, and which of them no stack took: a form that no reader knows is told, and not left out in silence."""

from __future__ import annotations

import re

MAX_LINES = 20_000
"""So many such lines are remembered."""
_SIGNS = (
    re.compile(r"^\W{0,40}File \"[^\"\n]{1,400}\", line \d{1,7},? in "),
    re.compile(
        r"^\W{0,12}(?:\d{1,6}[.)]? )?(?:[\w:~<>.$]{2,200}|[\w:]{1,200}<[^()\n]{1,400}>[\w:]{0,100}) {0,60}"
        r"\([^()\s\"']{1,300}\.(?:pyx?|cc?|cpp|cxx|cu|hp?p?|rs|so(?:\.\d{1,4}){0,3}):\d{1,7}\)"
    ),
    re.compile(r"^\W{0,8}[\w:~<>.@]{2,200} ?\(.{0,3000}[)>] at (?:/|\.{1,2}/|\w)[^\s:\"'`]{0,300}\.(?:cc?|cpp|cxx|cu|hp?p?|rs|S):\d{1,7}\b"),
    re.compile(r"^\W{0,8}(?:frame )?#\d{1,4}:? {1,4}(?:0x[0-9a-fA-F]{6,16} |\S.{0,300}(?: from /| in /))"),
    re.compile(
        r"^\W{0,12}(?:\d{1,6} {1,12})?(?:\S{1,80} {1,40})?\[?0x[0-9a-fA-F]{6,16}\]? {1,4}[\w:~<>?]{2,300}.{0,400}? \+ (?:0x[0-9a-f]{1,8}|\d{1,8})\b"
    ),
    re.compile(r"^\W{0,200}(?:\d{1,6} {1,4})?[\w:~<>?]{2,300} {1,4}\((?:in )?[\w.+<> -]{1,80}\)(?: \+ \d{1,9})? {1,4}\[0x[0-9a-f]{4,16}\]"),
    re.compile(r"^\W{0,12}(?:\[<[0-9a-fx]{1,18}>\] )?[\w.]{2,120}\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8}"),
    re.compile(r"^\W{0,12}[\w./<>-]{1,300}\.pyx?:\d{1,7}(?:::|,? in )[\w.<>]{2,160}(?:\(\))?\W{0,4}$"),
    re.compile(r"^\W{0,12}[\w.<>]{2,160}(?:\(\))?(?: @ ?| at | in |, | - | — |: | {1,60}|\t)\(?[\w./<>-]{1,300}\.pyx?:\d{1,7}\)?\W{0,4}$"),
)
"""Forms of a frame, each wider than the reader of any tool: a function with its place, or with its address, in whatever order."""


def looks_like_frame(text: str) -> bool:
    """Would a reader take this line for a frame of some stack?"""
    return len(text) <= 4_000 and any(sign.search(text) for sign in _SIGNS)


class Left:
    """Which lines of a text were seen, and which of them a stack took."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._taken: set[int] = set()

    def see(self, number: int, text: str) -> None:
        """A line that perhaps is a frame."""
        if len(self._seen) < MAX_LINES and looks_like_frame(text):
            self._seen.add(number)

    def take(self, number: int) -> None:
        """A stack has it."""
        if number in self._seen or len(self._taken) < MAX_LINES:
            self._taken.add(number)

    def lines(self) -> tuple[int, ...]:
        """Those that look like frames, and that no stack took."""
        return tuple(sorted(self._seen - self._taken))


def as_ranges(lines: tuple[int, ...]) -> str:
    """``12-18, 40``"""
    found: list[list[int]] = []
    for number in lines:
        if found and number - found[-1][1] <= 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)
