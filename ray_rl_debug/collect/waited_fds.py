"""Which descriptors a thread that sleeps in the kernel waits for: those of poll, select and epoll, or the one that it reads or writes.

``/proc/PID/task/TID/syscall`` tells the call and its arguments. The sets of poll and select stand in the memory of the process, those of epoll in
``/proc/PID/fdinfo``. Nobody is stopped for it, so the call is read again afterwards: a thread that went on meanwhile has no answer.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import struct
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.model.system_calls import call_name

MAX_FDS = 256
"""A call that waits for more is left out: the first few of them would mislead."""
MAX_SELECT = 1 << 16
"""Bits of the sets of select; libc's own have 1,024."""
MAX_THREADS = 64
"""Looked at per process."""

_KINDS = {
    **dict.fromkeys(("poll", "ppoll"), "poll"),
    **dict.fromkeys(("select", "pselect6"), "select"),
    **dict.fromkeys(("epoll_wait", "epoll_pwait", "epoll_pwait2"), "epoll"),
    "restart_syscall": "restarted",
    **dict.fromkeys("read readv write writev recvfrom recvmsg recvmmsg sendto sendmsg sendmmsg accept accept4 connect".split(), "one"),
}
"""What the calls wait for: a set of descriptors, or the one that they are given."""
_POLLS = ("poll_schedule_timeout", "do_poll", "do_sys_poll")
_TARGET = re.compile(r"^tfd:\s+(\d+)", re.MULTILINE)


class _Call(msgspec.Struct, frozen=True):
    kind: str
    arguments: tuple[int, ...]


def read_waited_fds(pid: int, tids: Iterable[int], proc: Path = PROC, *, machine: str = platform.machine()) -> dict[int, tuple[int, ...]]:
    """Descriptors by thread, ascending; a thread that runs, waits for something else or may not be read is not in it."""
    found = {}
    with contextlib.ExitStack() as stack:
        memory = _open_memory(pid, proc)
        if memory is not None:
            stack.callback(os.close, memory)
        for tid in sorted(set(tids))[:MAX_THREADS]:
            text = _syscall(pid, tid, proc)
            call = _call(text, machine, proc / str(pid) / "task" / str(tid))
            fds = _fds(call, pid, memory, proc) if call is not None else None
            if fds is not None and len(fds) <= MAX_FDS and _syscall(pid, tid, proc) == text:
                found[tid] = tuple(sorted(fds))
    return found


def _open_memory(pid: int, proc: Path) -> int | None:
    try:
        return os.open(proc / str(pid) / "mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _syscall(pid: int, tid: int, proc: Path) -> str | None:
    return read_text(proc / str(pid) / "task" / str(tid) / "syscall", 512)


def _call(text: str | None, machine: str, task: Path) -> _Call | None:
    words = (text or "").split()
    if len(words) < 7 or not words[0].isdigit():
        return None  # "running", "-1 ..." or refused
    kind = _KINDS.get(call_name(int(words[0]), machine) or "")
    if kind == "restarted":
        # a poll with a time-out that was interrupted, as each look of py-spy does; its arguments stay in the registers
        wchan = read_text(task / "wchan", 128) or ""
        kind = "poll" if wchan.startswith(_POLLS) else None
    try:
        return _Call(kind, tuple(int(w, 16) for w in words[1:7])) if kind is not None else None
    except ValueError:
        return None


def _fds(call: _Call, pid: int, memory: int | None, proc: Path) -> set[int] | None:
    first, second = call.arguments[:2]
    if call.kind == "one":
        return {first} if first < 1 << 31 else None
    if call.kind == "epoll":
        text = read_text(proc / str(pid) / "fdinfo" / str(first), 1 << 17) if first < 1 << 31 else None
        return {int(fd) for fd in _TARGET.findall(text)} if text is not None else None
    if memory is None:
        return None
    try:
        return _polled(memory, first, second) if call.kind == "poll" else _selected(memory, first, call.arguments[1:4])
    except (OSError, OverflowError):
        return None


def _polled(memory: int, address: int, count: int) -> set[int] | None:
    if count > MAX_FDS:
        return None
    data = os.pread(memory, 8 * count, address) if count else b""
    return {fd for fd, _, _ in struct.iter_unpack("<ihh", data) if fd >= 0} if len(data) == 8 * count else None


def _selected(memory: int, count: int, sets: tuple[int, ...]) -> set[int] | None:
    if count > MAX_SELECT:
        return None
    size = (count + 63) // 64 * 8  # the kernel reads whole words
    found: set[int] = set()
    for address in sets:
        if address and size:
            bits = int.from_bytes(os.pread(memory, size, address), "little")
            found.update(fd for fd in range(count) if bits >> fd & 1)
    return found
