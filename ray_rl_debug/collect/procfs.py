"""Small readers of /proc; every one gives None when the kernel refuses, the process is gone, or the kernel does not answer in time.

Command line, environment and maps are read under a lock of the process's memory: one thread of it that sleeps in the kernel with that lock
(a page of a hung file system, a driver) holds up everybody who reads them, as ``ps`` knows.
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

import msgspec

from ray_rl_debug.bounded.calls import within
from ray_rl_debug.model.foreign_text import as_text
from ray_rl_debug.model.snapshot import Thread
from ray_rl_debug.model.system_calls import call_name

PROC = Path("/proc")
MEMORY_S = 0.5
"""For a file that is read under the lock of a process's memory; a healthy one takes some microseconds."""
SILENT_S = 60.0
"""A process that did not answer is not asked again for so long."""
_OF_MEMORY = frozenset({"cmdline", "environ", "maps"})
_silent: dict[str, float] = {}
"""Until when a process is not asked, by its folder."""


class Stat(msgspec.Struct, frozen=True, kw_only=True):
    """What we use of /proc/PID/stat."""

    comm: str
    state: str
    ppid: int
    ticks: int
    """CPU time, user and system, in clock ticks."""
    nice: int
    threads: int
    start_ticks: int
    """Since boot; with the pid it names one process for ever."""
    rss_pages: int
    wait_status: int | None = None
    """How a dead process ended; 0 as well where that may not be read."""


def machine_of(proc: Path = PROC) -> tuple[str | None, str | None]:
    """Boot id and pid namespace: process ids mean the same processes wherever both are equal."""
    namespace = proc / "self/ns/pid"
    return (read_text(proc / "sys/kernel/random/boot_id", 64) or "").strip() or None, os.readlink(namespace) if namespace.is_symlink() else None


def read_text(path: Path, limit: int = 1 << 20) -> str | None:
    """A file's text, at most `limit` bytes, what is no UTF-8 spelled out; None when it cannot be read."""
    data = read_bytes(path, limit)
    return as_text(data) if data is not None else None


def read_bytes(path: Path, limit: int = 1 << 20) -> bytes | None:
    """A file's content, at most `limit` bytes; None when it cannot be read."""
    try:
        return _read_patiently(path, limit) if path.name in _OF_MEMORY else _read(path, limit)
    except (OSError, ValueError):
        return None


def _read(path: Path, limit: int) -> bytes:
    with path.open("rb") as f:
        return f.read(limit)


def _read_patiently(path: Path, limit: int) -> bytes:
    process = str(path.parent)
    if _silent.get(process, 0.0) > time.monotonic():
        raise TimeoutError
    try:
        return within(MEMORY_S, lambda: _read(path, limit))
    except TimeoutError:
        _silent[process] = time.monotonic() + SILENT_S
        raise


def count_children(pid: int, proc: Path = PROC) -> int | None:
    """How many children the threads of a process have, the dead ones among them; None where the kernel does not tell."""
    found = 0
    try:
        tasks = [p for p in (proc / str(pid) / "task").iterdir() if p.name.isdigit()]
    except OSError:
        return None
    for task in tasks:
        text = read_text(task / "children")
        if text is None and task.exists():
            return None
        found += len((text or "").split())
    return found


def list_pids(proc: Path = PROC) -> list[int]:
    """All processes, by number."""
    try:
        return sorted(int(p.name) for p in proc.iterdir() if p.name.isdigit())
    except OSError:
        return []


def read_stat(base: Path) -> Stat | None:
    """The stat of a process or thread folder."""
    text = read_text(base / "stat")
    _, bracket, inside = (text or "").partition("(")
    comm, end, after = inside.rpartition(")")
    if not bracket or not end:
        return None
    rest = after.split()
    try:
        return Stat(
            comm=comm,
            state=rest[0],
            ppid=int(rest[1]),
            ticks=int(rest[11]) + int(rest[12]),
            nice=int(rest[16]),
            threads=int(rest[17]),
            start_ticks=int(rest[19]),
            rss_pages=int(rest[21]),
            wait_status=int(rest[49]) if len(rest) > 49 else None,
        )
    except (IndexError, ValueError):
        return None


def read_status(pid: int, proc: Path = PROC) -> dict[str, str]:
    """Fields of /proc/PID/status; empty when unreadable."""
    text = read_text(proc / str(pid) / "status") or ""
    return {k: v.strip() for k, _, v in (line.partition(":") for line in text.splitlines()) if v}


def read_arguments(pid: int, proc: Path = PROC) -> list[str]:
    """The command line as written by the program now."""
    data = _of_memory(pid, "cmdline", 1 << 16, proc) or b""
    return [as_text(a) for a in data.rstrip(b"\0").split(b"\0")] if data.strip(b"\0") else []


def read_environment(pid: int, proc: Path = PROC) -> list[tuple[str, str]] | None:
    """The environment as the process was started; None when refused."""
    data = _of_memory(pid, "environ", 1 << 18, proc)
    if data is None:
        return None
    pairs = (as_text(v).partition("=") for v in data.split(b"\0") if b"=" in v)
    return [(k, v) for k, _, v in pairs]


def _of_memory(pid: int, name: str, limit: int, proc: Path) -> bytes | None:
    """A file about the memory of a process. One whose first thread has ended shows it through a thread that the kernel still keeps."""
    data = read_bytes(proc / str(pid) / name, limit)
    stat = read_stat(proc / str(pid)) if not data else None
    if stat is None or stat.state != "Z" or stat.threads < 2:
        return data
    others = (proc / str(pid) / "task" / tid for tid in _list_threads(pid, proc) if tid != str(pid))
    return next((kept for task in others if (kept := read_bytes(task / name, limit))), data)


def _list_threads(pid: int, proc: Path) -> list[str]:
    try:
        return [p.name for p in (proc / str(pid) / "task").iterdir() if p.name.isdigit()]
    except OSError:
        return []


class ThreadClock(msgspec.Struct, frozen=True, kw_only=True):
    """A thread at one moment."""

    comm: str
    state: str
    cpu_ns: int | None
    slices: int | None
    ticks: int
    queue_ns: int | None = None
    """Time it was ready to run and had no core."""


def read_threads(pid: int, proc: Path = PROC, *, limit: int = 2000) -> dict[int, ThreadClock]:
    """CPU clocks of all threads, by thread id."""
    base = proc / str(pid) / "task"
    found = {}
    try:
        tids = sorted(int(p.name) for p in base.iterdir() if p.name.isdigit())[:limit]
    except OSError:
        return {}
    for tid in tids:
        stat = read_stat(base / str(tid))
        if stat is None:
            continue
        cpu, queued, slices = [*(whole(word) for word in (read_text(base / str(tid) / "schedstat") or "").split()), None, None, None][:3]
        found[tid] = ThreadClock(comm=stat.comm, state=stat.state, cpu_ns=cpu, slices=slices, ticks=stat.ticks, queue_ns=queued)
    return found


def finish_threads(pid: int, before: dict[int, ThreadClock], after: dict[int, ThreadClock], tick_s: float, proc: Path = PROC) -> tuple[Thread, ...]:
    """Threads over a window: their clocks' difference, with the wait channel and system call they end in."""
    threads = []
    for tid, now in after.items():
        then = before.get(tid)
        base = proc / str(pid) / "task" / str(tid)
        wchan = (read_text(base / "wchan") or "").strip().partition(".")[0]  # the compiler's copies: poll_schedule_timeout.constprop.0
        number, first = _syscall(read_text(base / "syscall"))
        cpu = slices = queued = None
        if then is not None:
            exact = now.cpu_ns is not None and then.cpu_ns is not None
            cpu = (now.cpu_ns - then.cpu_ns) / 1e9 if exact else (now.ticks - then.ticks) * tick_s  # type: ignore[operator]
            slices = now.slices - then.slices if now.slices is not None and then.slices is not None else None
            queued = (now.queue_ns - then.queue_ns) / 1e9 if now.queue_ns is not None and then.queue_ns is not None else None
        threads.append(
            Thread(
                tid=tid,
                comm=now.comm,
                state=now.state,
                wchan=wchan if wchan not in ("", "0") else None,
                syscall=number,
                call=call_name(number, platform.machine()) if number is not None else None,
                syscall_arg0=first,
                cpu_s=round(cpu, 4) if cpu is not None else None,
                run_slices=slices,
                queued_s=round(queued, 4) if queued is not None else None,
            )
        )
    return tuple(threads)


def _syscall(text: str | None) -> tuple[int | None, int | None]:
    words = (text or "").split()
    number = whole(words[0]) if len(words) > 1 else None
    if number is None:
        return None, None
    try:
        first = int(words[1], 16)
    except ValueError:
        return number, None
    if first in _MINUS_ONE:
        return number, -1
    return number, first if first < 1 << 31 else None


_MINUS_ONE = frozenset({(1 << 32) - 1, (1 << 64) - 1})
"""Any child, where it is the number of one."""


def whole(text: str) -> int | None:
    """A number as the kernel writes it; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None
