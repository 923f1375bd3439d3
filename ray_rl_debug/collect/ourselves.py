"""Which processes are our own: they are no part of the job that we look at."""

from __future__ import annotations

import os
from pathlib import Path

from ray_rl_debug.collect.procfs import PROC, read_arguments, read_stat, read_text

_SHELLS = frozenset({"sh", "bash", "dash"})


def above_us(proc: Path = PROC) -> tuple[int, ...]:
    """Our front (see `commands.front`), and the shells that have nothing else to run than us, as those of a job that was submitted; nearest first."""
    found: list[int] = []
    child = os.getpid()
    while (stat := read_stat(proc / str(child))) is not None and stat.ppid > 1:
        parent = read_stat(proc / str(stat.ppid))
        if parent is None or (parent.comm not in _SHELLS and not _is_front(stat.ppid, child, proc)):
            break
        children = (read_text(proc / str(stat.ppid) / "task" / str(stat.ppid) / "children", 4096) or "").split()
        if children != [str(child)]:
            break
        found.append(stat.ppid)
        child = stat.ppid
    return tuple(found)


def _is_front(parent: int, child: int, proc: Path) -> bool:
    own = read_arguments(child, proc)
    return bool(own) and read_arguments(parent, proc) == own
