"""Lines for a terminal: width, colour, and text from outside that cannot steer it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

_STYLES = {"red": "31;1", "yellow": "33;1", "green": "32;1", "dim": "2", "bold": "1", "cyan": "36"}
# C0 and C1 controls, bidirectional overrides and zero-width characters: any of them can make a terminal lie.
_HOSTILE = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def neutralise(text: str) -> str:
    """`text` on one line with control characters spelled out (``\\x1b``), so that it cannot steer a terminal."""
    return _HOSTILE.sub(_spell, text)


class Writer:
    """Width, colour and verbosity of one rendering."""

    def __init__(self, width: int, colour: bool, verbose: bool) -> None:
        self.width = max(width, 40)
        self.colour = colour
        self.verbose = verbose

    def style(self, name: str, text: str) -> str:
        return f"\x1b[{_STYLES[name]}m{text}\x1b[0m" if self.colour and text else text

    def head(self, text: str) -> str:
        return self.style("bold", text)

    def wrap(self, text: str, indent: str, hanging: str | None = None) -> Iterator[str]:
        """`text`, neutralised, wrapped at words; long words (paths) stay whole."""
        hanging = indent if hanging is None else hanging
        yield from textwrap.wrap(
            neutralise(text), self.width, initial_indent=indent, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
        ) or [indent.rstrip()]

    def limit(self, count: int, many: int) -> int:
        """How many of `many` to show; all with ``-v``."""
        return many if self.verbose else min(count, many)

    def cut(self, text: str, room: int | None = None) -> str:
        """`text`, neutralised, on one line; the middle of a long one is left out unless verbose."""
        text = neutralise(text)
        room = self.width if room is None else room
        if self.verbose or len(text) <= room:
            return text
        tail = room // 3
        return text[: room - tail - 1] + "…" + text[len(text) - tail :]


def _spell(found: re.Match[str]) -> str:
    char = found[0]
    if char in "\n\t\r":
        return {"\n": "\\n", "\t": " ", "\r": "\\r"}[char]
    return f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}"
