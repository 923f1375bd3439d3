"""What stands before each line of a stack, where no collector that we know wrote it: learned from the lines of the text themselves.

A text before the head of a thread that also stands before frames is a prefix: ``trainer-0 pytorch   File "a.py", line 3`` (stern), the columns of a
logger, the tag of GNU parallel. Clock times in it differ from line to line; the rest is one writer's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

MAX_BYTES = 1 << 20
"""Prefixes are learned from the beginning of a text."""
MAX_PREFIXES = 200
_MAX_LINES = 20_000

_LEARNED_FROM = re.compile(
    rb'^.{2,400}?(?:[Tt]hread (?:0x|\d)|Process \d|  File "| [\w.<>]{1,80} \([^()\s]{1,300}:\d|\.py:\d{1,7},? in |#\d{1,4} {1,3}0x'
    rb"|frame #\d{1,4}: )[^\n]{0,8000}$",
    re.MULTILINE,
)
_OF_HEADS = (b"hread ", b"Process ", b"Traceback (most recent call last)", b".py:", b" #0")
"""One of them is in every head, or frame that stands without one."""
_HEAD = (
    r"(?:(?:Thread|Current thread) 0x[0-9a-fA-F]{4,16} |Thread (?:0x[0-9a-fA-F]{1,16}|\d{1,16}) \((?:active|idle)|Process \d{1,9}: "
    r"|Traceback \(most recent call last\)|#0 {1,3}0x[0-9a-f]{6,16} in |frame #0: )"
)
_FRAME = (
    r"(?:  File \"[^\"\n]{1,300}\", line \d|    [\w.<>]{1,80} \([^()\s]{1,300}:\d{1,7}\)$"
    r"|#[1-9]\d{0,3} {1,3}0x[0-9a-f]{6,16} in |frame #[1-9]\d{0,3}: )"
)
_BEFORE_HEAD = re.compile(r"^(?P<before>[^\s│┃>\"'`#(-].{1,200}?)(?=" + _HEAD + ")")
_BEFORE_FRAME = re.compile(r"^(?P<before>[^\s│┃>\"'`#(-].{1,200}?)(?=" + _FRAME + ")")
_WHOLE_FRAME = re.compile(
    r"^(?P<before>[^\s│┃>\"'`#(-][^`'\"]{1,120}?[]:|>)] {1,4})"
    r"(?:[\w.<>]{1,80} \([^()\s]{1,300}\.\w{1,4}:\d{1,7}\)|[^()\s]{1,300}\.py:\d{1,7},? in [\w.<>]{1,80})$"
)
_IN_A_ROW = 3
"""Frames below each other with the same words before them, where these have no head: a label stands before one stack only."""
_ANY_CLOCK = r"(?:\d{2,4}[-/]\d\d[-/]\d{2,4}[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_CLOCK = re.compile(_ANY_CLOCK)
_NO_PREFIX = re.compile(r"[\"'`]|\.py\b|\b(?:Thread|Process|File)\b")
_RANK = re.compile(r"\brank[ _]?[=:]?[ _]?(\d{1,6})\b", re.IGNORECASE)
_PID = re.compile(r"\bpid[ =:]{1,2}(\d{1,9})\b", re.IGNORECASE)
_SET = re.compile(r"^(?:[A-Za-z][\w.-]{0,60})?(?:\{(?P<braces>[\d.,-]{1,400})\}|\[(?P<brackets>[\d.,-]{1,400})\])(?![\w.])")
"""``app{0-3,7}: ``, ``[0-15]: ``: programs that fold equal lines name the ranks of all that wrote one."""
_NODE = re.compile(r"^\[?(?P<node>[A-Za-z][\w.-]{0,80})\]?(?P<more>.*)$")


def learn(text: bytes, plain: Callable[[str], Iterable[str]]) -> re.Pattern[str] | None:
    """One pattern of all prefixes in the text; None where its stacks stand alone.

    Args:
        plain: The lines in a line of the file, without what is known.
    """
    heads: dict[str, None] = {}
    frames: set[str] = set()
    row: tuple[str, int, int] = ("", 0, 0)
    if not any(one in text for one in _OF_HEADS):
        return None  # a prefix is learned from heads and frames; most logs have neither
    for number, found in enumerate(_LEARNED_FROM.finditer(text[:MAX_BYTES])):
        if number >= _MAX_LINES:
            break
        raw = found[0].decode("utf-8", "replace")
        if raw.lstrip(" >").startswith("|"):
            continue  # a row of a table
        for line in plain(raw):
            if (alone := _WHOLE_FRAME.match(line)) is not None and sum(c.isalpha() for c in alone["before"]) > 1:
                shape = _CLOCK.sub("\0", alone["before"])
                row = (shape, row[1] + 1 if row[0] == shape and found.start() == row[2] else 1, found.end() + 1)
                if row[1] == _IN_A_ROW:
                    heads[shape] = None
                    frames.add(shape)
            for pattern in (_BEFORE_HEAD, _BEFORE_FRAME):
                before = pattern.match(line)
                if before is None or _NO_PREFIX.search(before["before"]) or sum(c.isalpha() for c in before["before"]) < 2:
                    continue
                shape = _CLOCK.sub("\0", before["before"])
                if pattern is _BEFORE_HEAD:
                    heads[shape] = None
                else:
                    frames.add(shape)
    learned = [shape for shape in heads if shape in frames][:MAX_PREFIXES]
    if not learned:
        return None
    longest_first = sorted(learned, key=len, reverse=True)
    return re.compile("|".join(f"{_as_pattern(s)}|{_as_pattern(s.rstrip())}$" for s in longest_first))


def writer(prefix: str) -> dict[str, str]:
    """Who wrote the line, as far as the prefix says: a rank, a process id, else the name of a machine or pod."""
    found: dict[str, str] = {}
    if folded := _SET.match(prefix.strip()):
        return {"ranks": folded["braces"] or folded["brackets"]}
    rank, pid, node = _RANK.search(prefix), _PID.search(prefix), _NODE.match(_CLOCK.sub("", prefix).strip(" \t|:-"))
    if rank:
        found["rank"] = rank[1]
    if pid:
        found["pid"] = pid[1]
    if not found and node is not None and (any(c.isdigit() for c in node["node"]) or not any(c.isalnum() for c in node["more"])):
        found["node"] = node["node"]
    return found or {"title_of_lines": _CLOCK.sub("", prefix).strip()}


def _as_pattern(shape: str) -> str:
    return _ANY_CLOCK.join(re.escape(part) for part in shape.split("\0"))
