"""Waits that would end early if their process were stopped, even for a moment.

The kernel begins most waits anew after a stop. A write or send that has handed over a part returns with that part, a read that was asked for all its
data (``MSG_WAITALL``) likewise, and semop fails. Not every program expects that: Python with ``PYTHONUNBUFFERED`` drops the rest of what it prints.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.model.system_calls import call_name

_CALLS = frozenset("write writev pwrite64 pwritev sendto sendmsg sendmmsg semop semtimedop".split())
_FLAGS = {"recvfrom": 4, "recvmsg": 3, "recvmmsg": 4}
"""Which word of ``/proc/PID/task/TID/syscall`` holds the flags."""
_WAIT_ALL = 0x100


def is_cut_short(pid: int, proc: Path = PROC, *, machine: str = platform.machine()) -> bool:
    """Would a stop end the call that a thread of this process is in?"""
    folder = proc / str(pid) / "task"
    try:
        tids = os.listdir(folder)
    except OSError:
        return False
    return any(_ends_early(read_text(folder / tid / "syscall", 512), machine) for tid in tids)


def _ends_early(text: str | None, machine: str) -> bool:
    words = (text or "").split()
    if len(words) < 7 or not words[0].isdigit():
        return False  # it runs, or that may not be read
    name = call_name(int(words[0]), machine) or ""
    return name in _CALLS or (name in _FLAGS and bool(int(words[_FLAGS[name]], 16) & _WAIT_ALL))
