"""Who used a message queue or semaphore of System V last, where a thread waits at one.

The kernel tells it of queues in ``/proc/sysvipc/msg``, of semaphores only who asks for it (``semctl``), which changes nothing.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.model.snapshot import Process, SystemV

_CALLS = {"msgrcv": "message", "msgsnd": "message", "semop": "semaphore", "semtimedop": "semaphore"}
_TABLES = {"message": "msg", "semaphore": "sem"}
_LAST_USER = 11
"""GETPID of semctl(2)."""
LastUser = Callable[[int, int], int | None]
"""Who changed one semaphore of a set last."""
MAX_OF_SET = 16
"""Semaphores of one set that are asked for."""


def read_system_v(
    processes: Sequence[Process], *, proc: Path = PROC, last_user: Callable[[int, int], int | None] | None = None
) -> tuple[SystemV, ...]:
    """Those at which threads of these processes wait; of other namespaces none, as the same number means another one there."""
    waiting: set[tuple[str, int]] = set()
    for process in processes:
        for thread in process.threads:
            kind = _CALLS.get(thread.call or "") if thread.state == "S" else None
            if kind is not None and thread.syscall_arg0 is not None and _is_ours(process.pid, proc):
                waiting.add((kind, thread.syscall_arg0))
    found = []
    for kind, number in sorted(waiting):
        row = _row(kind, number, proc)
        if row is None:
            continue
        if kind == "message":
            users = [int(row["lspid"]), int(row["lrpid"])]
        else:
            users = [pid or 0 for pid in (_of_set(number, int(row["nsems"]), last_user or _asked))]
        last = tuple(sorted({pid for pid in users if pid > 0}))
        ended = tuple(pid for pid in last if not (proc / str(pid)).exists())
        found.append(SystemV(kind=kind, number=number, is_private=row["key"] == "0", users=last, ended=ended))
    return tuple(found)


def _of_set(number: int, count: int, last_user: LastUser) -> list[int | None]:
    return [last_user(number, index) for index in range(min(count, MAX_OF_SET))]


def _row(kind: str, number: int, proc: Path) -> dict[str, str] | None:
    lines = [line.split() for line in (read_text(proc / "sysvipc" / _TABLES[kind]) or "").splitlines()]
    rows = (dict(zip(lines[0], line, strict=False)) for line in lines[1:] if len(line) == len(lines[0]) and all(_is_number(w) for w in line))
    return next((row for row in rows if row.get("msqid", row.get("semid")) == str(number)), None)


def _is_number(word: str) -> bool:
    return word.lstrip("-").isdigit() and word.isascii() and len(word) <= 20


def _is_ours(pid: int, proc: Path) -> bool:
    try:
        return os.readlink(proc / str(pid) / "ns" / "ipc") == os.readlink(proc / "self" / "ns" / "ipc")
    except OSError:
        return False


def _asked(number: int, index: int) -> int | None:
    """None where we may not ask."""
    pid = int(ctypes.CDLL(None).semctl(number, index, _LAST_USER))
    return pid if pid > 0 else None
