"""Stacks that somebody draws as a tree of names below a process: each call hangs on its caller.

``rank 0-6`` / `` └─ train_step`` / ``     └─ backward`` / ``         └─ all_reduce   <-- here`` is one stack of seven ranks.
Only a path is read: where two names hang on one, it is a tree of what a program does.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from ray_rl_debug.formats.pasted import joined, labels

_BRANCH = re.compile(r"^(?P<depth>[\s│|]{0,120})(?:[└╰├`+]|\\|\|)(?:[─━-]{1,3}|_)>?\s{0,3}(?P<told>[A-Za-z_<`].{0,200}?)\s*$")
_ASIDE = re.compile(r"\s{1,60}(?:<-{1,3}|←|⟵|#|\[|\().{0,160}$")
"""What somebody says of a call, behind it."""
_PLACED = re.compile(r"\.(?:pyx?|cc?|cpp|cu|so)\b")
"""With files in it, each line is read as a frame."""
_HEAD_CHARS = 100
_LEAST = 2
_MOST = 60


def joined_lines(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines, each such tree as one: whose it is, and the chain of its names."""
    held: list[tuple[int, str]] = []
    for number, line in lines:
        if held and len(held) <= _MOST and _BRANCH.match(line) is not None:
            held.append((number, line))
            continue
        yield from _told(held)
        held = [(number, line)]
    yield from _told(held)


def _told(held: list[tuple[int, str]]) -> Iterable[tuple[int, str]]:
    if len(held) <= _LEAST or not _is_named(held[0][1]):
        return held
    found = [branch for _, line in held[1:] if (branch := _BRANCH.match(line)) is not None]
    names = [_ASIDE.sub("", branch["told"]).strip("` ") for branch in found]
    depths = [branch.end("depth") for branch in found]
    is_path = all(a < b for a, b in itertools.pairwise(depths))
    is_placed = any(_PLACED.search(branch["told"]) for branch in found)
    if not is_path or is_placed or any(joined.name_alone(name) is None for name in names) or not any(map(joined.is_code, names)):
        return held
    return [(held[0][0], f"{held[0][1].strip().rstrip(':')}: stuck in {' → '.join(names)}"), *((number, "") for number, _ in held[1:])]


def _is_named(text: str) -> bool:
    """Does the line above the tree name a process?"""
    if not text.strip() or len(text) > _HEAD_CHARS or _PLACED.search(text):
        return False
    head = labels.read(f"{text.strip().rstrip(':')}:")
    return head is not None and bool(head.ranks or head.pid or head.label or head.title)
