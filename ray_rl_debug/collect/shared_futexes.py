"""Which threads that sleep at a futex do so in memory that processes share: then another process may wake them.

The operation of the call says whether the kernel was told that the memory is private, as it is for the locks of a program alone. Where it was not,
the map of the process decides: a thread that joins another one of C is told so as well.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable
from pathlib import Path

from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.model.system_calls import call_name

MAX_THREADS = 64
"""Looked at per process."""
_PRIVATE = 0x80
"""FUTEX_PRIVATE_FLAG"""
_MAPPED = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) ", re.MULTILINE)


def read_shared_futexes(pid: int, tids: Iterable[int], proc: Path = PROC, *, machine: str = platform.machine()) -> dict[int, bool]:
    """Whether the memory is shared, by thread; those that do not wait at a futex, or may not be read, are not in it."""
    found: dict[int, bool] = {}
    open_to_others: dict[int, int] = {}
    for tid in sorted(set(tids))[:MAX_THREADS]:
        call = _futex(pid, tid, proc, machine)
        if call is None:
            continue
        found[tid] = False
        if not call[1] & _PRIVATE:
            open_to_others[tid] = call[0]
    shared = _shared(pid, proc) if open_to_others else []
    for tid, address in open_to_others.items():
        found[tid] = any(start <= address < end for start, end in shared)
    return found


def _futex(pid: int, tid: int, proc: Path, machine: str) -> tuple[int, int] | None:
    """Address and operation of the call."""
    task = proc / str(pid) / "task" / str(tid)
    words = (read_text(task / "syscall", 512) or "").split()
    if len(words) < 7 or not words[0].isdigit():
        return None  # "running", "-1 ..." or refused
    name = call_name(int(words[0]), machine)
    if name == "restart_syscall" and "futex" in (read_text(task / "wchan", 128) or ""):
        name = "futex"  # as each look of py-spy interrupts it; its arguments stay
    try:
        return (int(words[1], 16), int(words[2], 16)) if name == "futex" else None
    except ValueError:
        return None


def _shared(pid: int, proc: Path) -> list[tuple[int, int]]:
    text = read_text(proc / str(pid) / "maps", 8 << 20) or ""
    return [(int(m[1], 16), int(m[2], 16)) for m in _MAPPED.finditer(text) if m[3].endswith("s")]
