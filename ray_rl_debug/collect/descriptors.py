"""How many descriptors a process holds of how many, what they are, and whether one that holds all of them closes any.

Linux gives the lowest free number below the soft limit: a process can open something as long as a number there is free, whatever it holds above.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.collect.sockets import HALF_CLOSED, SocketReader
from ray_rl_debug.model.snapshot import Descriptors

_LIMIT = re.compile(r"^Max open files\s+(\d+|unlimited)\s+(\d+|unlimited)\s", re.MULTILINE)
MAX_HELD = 1 << 16
"""Descriptors of one process that are looked at, a tenth of a second; of one that holds more nothing is told."""
_KINDS = (("socket:", "sockets"), ("pipe:", "pipes"), ("/", "files"))
"""By how the kernel names them; all else is ``others``."""

Held = Mapping[int, str]
"""Numbers of descriptors, and what the kernel says each is."""


def look_at_full(pid: int, proc: Path = PROC) -> Held | None:
    """The descriptors of a process that has none left; None of one that has room, or whose descriptors may not be read."""
    limit, _ = _limits(pid, proc)
    names = _names(pid, proc) if limit is not None and limit <= MAX_HELD else None
    if limit is None or names is None:
        return None
    held = _held(pid, proc) if len(names) >= limit else None  # most have room, and cost no more than this count
    return held if held is not None and _free(held, limit) == 0 else None


def read_descriptors(pid: int, before: Held | None, sockets: SocketReader, proc: Path = PROC) -> Descriptors | None:
    """What a process holds; None when that may not be read, or is too much. `before`: what `look_at_full` gave at the start of the window."""
    held, (limit, hard_limit) = _held(pid, proc), _limits(pid, proc)
    if held is None:
        return None
    kinds = Counter(next((kind for start, kind in _KINDS if path.startswith(start)), "others") for path in held.values())
    inodes = [int(path[8:-1]) for path in held.values() if path.startswith("socket:[")]
    states = sockets.states(pid, inodes)
    return Descriptors(
        held=len(held),
        limit=limit,
        hard_limit=hard_limit,
        free=_free(held, limit) if limit is not None else None,
        sockets=kinds["sockets"],
        pipes=kinds["pipes"],
        files=kinds["files"],
        others=kinds["others"],
        half_closed=states[HALF_CLOSED] if states is not None else None,
        renewed=sum(before.get(fd) != path for fd, path in held.items()) if before is not None else None,
    )


def _names(pid: int, proc: Path) -> list[str] | None:
    """The numbers of its descriptors; None of more than `MAX_HELD`, or where they may not be read."""
    try:
        with os.scandir(proc / str(pid) / "fd") as rows:
            names = [row.name for row in islice(rows, MAX_HELD + 1)]
    except OSError:
        return None
    return names if len(names) <= MAX_HELD else None


def _held(pid: int, proc: Path) -> Held | None:
    """One that is opened or closed meanwhile is told or not."""
    folder = proc / str(pid) / "fd"
    held = {}
    names = _names(pid, proc)
    if names is None:
        return None
    for name in names:
        try:
            held[int(name)] = os.readlink(folder / name)
        except PermissionError:
            return None  # the folder may be listed by its owner even where ptrace access is refused
        except (OSError, ValueError):
            continue
    return held


def _free(held: Held, limit: int) -> int:
    return limit - sum(fd < limit for fd in held)


def _limits(pid: int, proc: Path) -> tuple[int | None, int | None]:
    """Soft and hard."""
    row = _LIMIT.search(read_text(proc / str(pid) / "limits", 1 << 14) or "")
    soft, hard = (int(text) if text.isdigit() else None for text in row.groups()) if row is not None else (None, None)
    return soft, hard
