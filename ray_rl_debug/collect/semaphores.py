"""Who holds the semaphores of multiprocessing that somebody waits for.

The kernel knows a waiter by the address that its futex call waits at, and by nothing who took the semaphore. Each process counts in its own
``SemLock`` how often it took it; that object is searched in its memory, and nobody is stopped for it.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ray_rl_debug.bounded.own_time import own_time
from ray_rl_debug.collect.async_tasks.memory import BadRead, Memory, ProcessSource, Spent
from ray_rl_debug.collect.async_tasks.runtime import Runtime, Unsupported, attach, native_threads
from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.model.snapshot import OpenFile, Process, SemaphoreUse, SharedSemaphore
from ray_rl_debug.model.system_calls import call_name

TOTAL_S = 2.0
"""For all processes of a node, by `own_time`."""
EACH_S = 1.0
MAX_SEARCHED = 256 << 20
"""Bytes per process. A SemLock is small: it lies in Python's own arenas, at the side of other small objects."""
MAX_MAPPING = 64 << 20
"""A larger one is no arena of Python."""
MAX_THREADS = 64
PIECE = 1 << 22
SEGMENT = "/dev/shm/sem."
_MAPPED = re.compile(rf"^([0-9a-f]+)-([0-9a-f]+) \S+ 0+ \S+ (\d+)\s+{re.escape(SEGMENT)}", re.MULTILINE)
_SEMLOCK = struct.Struct("<QQQQiii")
"""Reference count, type, handle, last thread, count, maximum and kind: the same from CPython 3.10 to 3.14."""
_HANDLE = 16
_NONSENSE = (BadRead, Spent, Unsupported, OSError, struct.error, ValueError, LookupError, OverflowError)


class _Segments(NamedTuple):
    """The semaphores that a process maps: first address to inode."""

    pid: int
    starts: dict[int, int]

    def at(self, address: int) -> int | None:
        return next((inode for start, inode in self.starts.items() if start <= address < start + 4096), None)

    def start(self, inode: int) -> int | None:
        return next((start for start, one in self.starts.items() if one == inode), None)


def read_semaphores(
    processes: Sequence[Process], *, total_s: float = TOTAL_S, proc: Path = PROC, clock: Callable[[], float] | None = None
) -> tuple[SharedSemaphore, ...]:
    """Those semaphores that threads of these processes wait for, as far as `total_s` seconds go. `clock`: by default a new `own_time`."""
    clock = clock or own_time()
    end = clock() + total_s
    segments = [s for p in processes if _maps_any(p.files or ()) and (s := _segments(p.pid, proc)).starts]
    waiters = _waiters(processes, segments, proc)
    found: dict[int, list[SemaphoreUse]] = {inode: [] for inode in waiters}
    unread: dict[int, list[int]] = {inode: [] for inode in waiters}
    maximum: dict[int, int] = {}
    known: dict[int, int] = {}
    for one in segments:
        wanted = {start: inode for start, inode in one.starts.items() if inode in waiters}
        left = end - clock()
        counts = _counts(one.pid, wanted, known, min(EACH_S, left), proc, clock) if wanted and left > 0 else {}
        for inode in wanted.values():
            use = counts.get(inode)
            if use is None:
                unread[inode].append(one.pid)
                continue
            maximum[inode] = use.maximum
            if use.taken:
                found[inode].append(SemaphoreUse(pid=one.pid, taken=use.taken, tid=use.tid))
    return tuple(
        SharedSemaphore(
            inode=inode,
            waiters=tuple(who),
            value=_value(who[0][0], segments, inode, proc),
            maximum=maximum.get(inode),
            uses=tuple(found[inode]),
            unread=tuple(unread[inode]),
        )
        for inode, who in sorted(waiters.items())
    )


def _maps_any(files: Iterable[OpenFile]) -> bool:
    return any(f.path.startswith(SEGMENT) for f in files)


def _segments(pid: int, proc: Path) -> _Segments:
    text = read_text(proc / str(pid) / "maps", 64 << 20) or ""
    return _Segments(pid, {int(m[1], 16): int(m[3]) for m in _MAPPED.finditer(text)})


def _waiters(processes: Sequence[Process], segments: Sequence[_Segments], proc: Path) -> dict[int, list[tuple[int, int]]]:
    """Process and thread of everybody who waits for a semaphore, by its inode."""
    threads = {p.pid: [t.tid for t in p.threads][:MAX_THREADS] for p in processes}
    found: dict[int, list[tuple[int, int]]] = {}
    for one in segments:
        for tid in threads[one.pid]:
            address = _futex(one.pid, tid, proc)
            inode = one.at(address) if address else None
            if inode is not None:
                found.setdefault(inode, []).append((one.pid, tid))
    return found


def _futex(pid: int, tid: int, proc: Path) -> int | None:
    """The address at which a thread waits in a futex call; one with a time-out, after an interruption, shows as restart_syscall."""
    words = (read_text(proc / str(pid) / "task" / str(tid) / "syscall", 512) or "").split()
    if len(words) < 7 or not words[0].isdigit():
        return None
    name = call_name(int(words[0]), platform.machine())
    return int(words[1], 16) if name in ("futex", "restart_syscall") else None


class _Count(NamedTuple):
    taken: int
    maximum: int
    tid: int | None


def _counts(
    pid: int, wanted: Mapping[int, int], known: dict[int, int], deadline_s: float, proc: Path, clock: Callable[[], float]
) -> dict[int, _Count]:
    """What a process has taken, by inode. `known`: where a SemLock of a handle was found before; forked processes have it at the same place."""
    end = clock() + deadline_s
    try:
        source = ProcessSource(pid, proc)
    except OSError:
        return {}
    found: dict[int, _Count] = {}
    try:
        memory = Memory(source, end, clock=clock)
        runtime = attach(memory)
        if runtime is None:
            return {}
        places = {handle: known[handle] for handle in wanted if handle in known and _semlock(runtime, known[handle], handle) is not None}
        missing = set(wanted) - set(places)
        for handle, at in _search(source, memory, missing, end, clock) if missing else ():
            if handle in missing and _semlock(runtime, at, handle) is not None:
                places[handle] = known[handle] = at
                missing.discard(handle)
                if not missing:
                    break
        threads = _threads(runtime, pid, proc)
        for handle, inode in wanted.items():
            told = _semlock(runtime, places[handle], handle) if handle in places else None
            if told is not None:
                last, taken, most = told
                found[inode] = _Count(taken, most, threads.get(last) if taken > 0 else None)
    except _NONSENSE:
        pass
    finally:
        source.close()
    return found


def _semlock(runtime: Runtime, at: int, handle: int) -> tuple[int, int, int] | None:
    """Last thread, count and maximum, where there is a SemLock of that handle."""
    try:
        _, kind, own, last, count, most, _ = _SEMLOCK.unpack(runtime.memory.read(at, _SEMLOCK.size))
        is_one = own == handle and most > 0 and runtime.objects.type_name(at) == "SemLock"
    except (BadRead, struct.error):
        return None
    return (last, count, most) if is_one and kind else None


def _search(source: ProcessSource, memory: Memory, handles: Iterable[int], end: float, clock: Callable[[], float]) -> Iterator[tuple[int, int]]:
    """Where words lie that may be the handle of a SemLock."""
    left = MAX_SEARCHED
    patterns = [(handle, struct.pack("<Q", handle)) for handle in handles]
    for mapping in memory.mappings:
        is_own = mapping.path in ("", "[heap]") or mapping.path.startswith("[anon")
        if not is_own or mapping.end - mapping.start > MAX_MAPPING:
            continue
        for start in range(mapping.start, mapping.end, PIECE):
            size = min(PIECE, mapping.end - start)
            left -= size
            if left < 0 or clock() > end:
                return
            with contextlib.suppress(OSError):
                data = source.pread(size, start)
                for handle, pattern in patterns:
                    at = data.find(pattern)
                    while at >= 0:
                        if not (start + at) & 7:
                            yield handle, start + at - _HANDLE
                        at = data.find(pattern, at + 1)


def _threads(runtime: Runtime, pid: int, proc: Path) -> dict[int, int]:
    """Native ids by what Python calls them."""
    native = native_threads(pid, proc)
    found = {}
    for interpreter in runtime.interpreters:
        for ident, tid in runtime.threads(interpreter).items():
            if tid is not None and tid in native:
                found[ident] = native[tid]
    return found


def _value(pid: int, segments: Iterable[_Segments], inode: int, proc: Path) -> int | None:
    start = next((s.start(inode) for s in segments if s.pid == pid), None)
    if start is None:
        return None
    try:
        memory = os.open(proc / str(pid) / "mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return int(struct.unpack("<I", os.pread(memory, 4, start))[0])
    except (OSError, struct.error, OverflowError):
        return None
    finally:
        os.close(memory)
