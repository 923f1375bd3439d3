"""What files say of processes beside their stacks: remarks, states, wait channels, tasks, and why a process could not be read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ray_rl_debug.formats.dump import CodePlace, Dump
from ray_rl_debug.formats.stack_table import short_file
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, FileLock, Gap, OpenFile, Process, Remark, Thread

_REFUSED = re.compile(r"EPERM|[Pp]ermission|not permitted|os error 1\b|os error 13\b|ptrace")
_GONE = re.compile(r"ESRCH|No such (?:process|file)|os error [23]\b")
_ENTRY = re.compile(r"__(?:x64|ia32|arm64|se|do)_sys_(\w{2,40})$")
MAX_REMARKS = 12


def remarks_of(held: Iterable[tuple[str, Dump]]) -> tuple[Remark, ...]:
    """The remarks on one process, each with its file and line; equal ones once."""
    found: dict[tuple[str, str], Remark] = {}
    for file, dump in held:
        for line, said in dump.said:
            remark = Remark(
                kind=said.kind, text=said.text, file=file, line=line, count=said.count, ranks=said.ranks, name=said.name, apart_s=said.apart_s
            )
            found.setdefault((said.kind, said.text), remark)
    return tuple(found.values())[:MAX_REMARKS]


def state_of(dumps: Sequence[Dump]) -> str | None:
    """The last state that a listing gave."""
    return next((d.state for d in reversed(dumps) if d.state), None)


def kernel_threads(dumps: Sequence[Dump]) -> tuple[Thread, ...]:
    """Threads of which the kernel was asked: where they sleep, by ``wchan``, the first frame of their kernel stack, or the system call."""
    found: dict[int, Thread] = {}
    for dump in dumps:
        for thread in dump.threads:
            tid = thread.tid or dump.pid
            wchan = thread.wchan or (_sleeps_in(thread.frames) if dump.source == "kernel" and thread.frames else None)
            if tid is not None and (wchan is not None or thread.call is not None):
                known = found.get(tid)
                call = thread.call or _call_in(thread.frames) or (known.call if known is not None else None)
                wchan = wchan or (known.wchan if known is not None else None)
                found[tid] = Thread(tid=tid, comm="", state=dump.state or state_of(dumps) or "?", wchan=wchan, call=call)
    own = next((d.pid for d in dumps if d.pid is not None), None)
    return tuple(sorted(found.values(), key=lambda t: t.tid != own))  # the main thread first


def _sleeps_in(frames: Sequence[CodePlace]) -> str:
    """The kernel function that says what it waits for, without those through which waits of all kinds go."""
    return next((function for function, _, _ in frames if not _HELPERS.match(function)), frames[0][0])


_HELPERS = re.compile(
    r"(?:__)?(?:(?:io_)?schedule(?:_timeout)?|bit_wait(?:_io)?|(?:out_of_line_)?wait_on_bit(?:_lock)?(?:_io)?|folio_wait_bit(?:_common)?"
    r"|wait_on_page_bit(?:_common)?(?:_killable)?|prepare_to_wait(?:_event|_exclusive)?|wait_for_common|do_wait_for_common)(?:\.|$)"
)


def files_of(dumps: Sequence[Dump]) -> tuple[OpenFile, ...] | None:
    """The files that ``lsof`` lists for a process; None where it was not asked."""
    held = {f.fd: f for d in dumps for f in d.files}
    found = [OpenFile(fd=f.fd, path=f.path, kind="file", inode=f.inode, device=f.device, writable=f.writable) for f in held.values()]
    return tuple(found) or None


def locks_of(processes: Mapping[int, Sequence[Dump]]) -> tuple[FileLock, ...]:
    """Who holds a lock on a file by ``lsof``, and who has the same file open while the kernel holds it up in such a call."""
    files: dict[tuple[str, int], dict[int, str | None]] = {}
    for pid, dumps in processes.items():
        for file in (f for d in dumps for f in d.files):
            users = files.setdefault((file.device, file.inode), {})
            users[pid] = file.lock or users.get(pid)
    calls = {pid: {t.call for d in dumps for t in d.threads} for pid, dumps in processes.items()}
    found = []
    for number, ((device, inode), users) in enumerate(files.items(), 1):
        waiters = [pid for pid, access in users.items() if access is None and calls[pid] & _LOCK_CALLS]
        kind = "POSIX" if any("fcntl" in calls[pid] for pid in waiters) else "FLOCK"
        held = [(pid, access) for pid, access in users.items() if access is not None]
        found += [FileLock(lock=number, kind=kind, access=access, pid=pid, device=device, inode=inode) for pid, access in held]
        if held:
            found += [FileLock(lock=number, kind=kind, access="WRITE", pid=p, device=device, inode=inode, waiting=True) for p in waiters]
    return tuple(found)


_LOCK_CALLS = frozenset({"flock", "fcntl"})


def _call_in(frames: Sequence[CodePlace]) -> str | None:
    """``fsync``, where a kernel stack shows ``__x64_sys_fsync``."""
    return next((found[1] for function, _, _ in frames if (found := _ENTRY.match(function))), None)


def async_tasks(dumps: Sequence[Dump]) -> tuple[AsyncTask, ...] | None:
    """The asyncio tasks of the last table; None where there is none."""
    last = next((d.tasks for d in reversed(dumps) if d.tasks), None)
    if last is None:
        return None
    return tuple(
        AsyncTask(
            address=task.number,
            name=task.name,
            chain=tuple(AwaitFrame(function=function, file=short_file(file)[0] or None, line=line or None) for function, file, line in task.chain),
            awaited=Awaited(kind="task", tasks=tuple(task.awaits)) if task.awaits else Awaited(kind=_awaited(task.chain)),
            tid=task.tid,
        )
        for task in last
    )


_SOCKETS = re.compile(r"(?:^|/)(?:httpcore/|aiohttp/(?:client|connector|streams)|anyio/_backends/|asyncio/streams\.py|websockets/|asyncpg/)")
"""Where coroutines of client libraries read from and write to connections."""


_OF_ASYNCIO = re.compile(r"(?:^|/)(?:asyncio|anyio/_core)/_?(locks|queues|tasks|synchronization)\.py$")
_WAITS = {
    ("locks", "acquire"): "lock",
    ("queues", "get"): "queue",
    ("queues", "put"): "queue",
    ("synchronization", "acquire"): "lock",
    ("synchronization", "Lock.acquire"): "lock",
    ("synchronization", "Semaphore.acquire"): "semaphore",
    ("locks", "Lock.acquire"): "lock",
    ("locks", "Semaphore.acquire"): "semaphore",
    ("locks", "BoundedSemaphore.acquire"): "semaphore",
    ("locks", "Event.wait"): "event",
    ("locks", "Condition.wait"): "condition",
    ("queues", "Queue.get"): "queue",
    ("queues", "Queue.put"): "queue",
    ("tasks", "sleep"): "sleep",
}
"""Coroutines of asyncio and anyio in which a task waits; CPython 3.14 prints them with their classes, a frame has the bare name."""


def _awaited(chain: Sequence[CodePlace]) -> str:
    """What a coroutine waits for, by its innermost frame."""
    function, file, _ = chain[-1] if chain else ("", "", 0)
    if found := _OF_ASYNCIO.search(file):
        return _WAITS.get((found[1], function), "unknown")
    return "socket" if _SOCKETS.search(file) else "unknown"


def unread_gap(process: Process, node: str) -> Gap | None:
    """Why the stacks of a process are missing, by what the tool said."""
    said = [r for r in process.remarks if r.kind == "unread"]
    if not said:
        return None
    words = "; ".join(r.text for r in said)
    kind = gaps.STACKS_REFUSED if _REFUSED.search(words) else gaps.PROCESS_GONE if _GONE.search(words) else gaps.STACKS_FAILED
    return Gap(
        id=kind,
        where=f"{node}/{process.pid}" if process.pid else node,
        what="its stacks",
        reason=f"{said[0].file}:{said[0].line} says: {said[0].text[:160]}",
        remedy=f"ps -o pid,stat,wchan:32,cmd -p {process.pid}" if process.pid else None,
    )
