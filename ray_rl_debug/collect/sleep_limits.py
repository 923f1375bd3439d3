"""How long a thread that sleeps for a time, or waits for another thread with a limit, will do so at most.

``/proc/PID/task/TID/syscall`` tells the call; the time that it was given stands in the memory of the process. Nobody is stopped for it, so the call
is read again afterwards. Without it a server that pauses for some seconds looks like one that sleeps for hours.
"""

from __future__ import annotations

import contextlib
import os
import platform
import struct
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.model.system_calls import call_name

MAX_THREADS = 64
"""Looked at per process."""
MAX_S = 1e7
"""A longer one is no time but a misreading, or as good as for ever."""
LATE_S = 1.0
"""A moment that has passed by less is about to wake."""
_ABSOLUTE = 1
_REALTIME, _MONOTONIC = 0, 1
_CLOCKS = {_REALTIME: "realtime", _MONOTONIC: "monotonic", 7: "boottime"}
_UNSIGNED, _MOST_MS = 0xFFFFFFFF, 0x7FFFFFFF
"""Of the milliseconds that these are told: a number below zero has no limit."""
_MS_AT = {"poll": 2, "epoll_wait": 3, "epoll_pwait": 3}
"""Which argument tells them."""
_OF_FUTEX = 0x7F
"""Of the operation of a futex: what it does. Above are flags."""
_WAIT, _WAIT_UNTIL = 0, 9
"""FUTEX_WAIT, for a time; FUTEX_WAIT_BITSET, until a moment."""
_BY_REALTIME = 0x100


def read_sleep_limits(
    pid: int, tids: Iterable[int], proc: Path = PROC, *, machine: str = platform.machine(), clock: Callable[[int], float] = time.clock_gettime
) -> dict[int, float]:
    """Seconds at most until a sleep ends, by thread; threads that do not sleep for a time, or may not be read, are not in it."""
    found = {}
    calls = {tid: call for tid in sorted(set(tids))[:MAX_THREADS] if (call := _call(pid, tid, proc, machine)) is not None}
    if not calls:
        return {}
    try:
        memory = os.open(proc / str(pid) / "mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        for tid, call in calls.items():
            with contextlib.suppress(OSError, OverflowError, struct.error):
                left = _left(call, memory, lambda number: clock(number) - _offset("self", number, proc) + _offset(pid, number, proc))
                if left is not None and -LATE_S < left < MAX_S and _call(pid, tid, proc, machine) == call:
                    found[tid] = round(max(left, 0.0), 3)
    finally:
        os.close(memory)
    return found


def _call(pid: int, tid: int, proc: Path, machine: str) -> tuple[str, tuple[int, ...]] | None:
    task = proc / str(pid) / "task" / str(tid)
    words = (read_text(task / "syscall", 512) or "").split()
    if len(words) < 7 or not words[0].isdigit():
        return None  # "running", "-1 ..." or refused
    try:
        name, arguments = call_name(int(words[0]), machine), tuple(int(w, 16) for w in words[1:7])
    except ValueError:
        return None
    wchan = (read_text(task / "wchan", 128) or "") if name == "restart_syscall" else ""
    if "nanosleep" in wchan:
        name = "clock_nanosleep" if arguments[0] in _CLOCKS else "nanosleep"  # as each look of py-spy interrupts it; its arguments stay
    elif "futex" in wchan:
        name = "futex"
    elif "poll_schedule" in wchan or "do_poll" in wchan:
        name = "poll"
    sleeps = name in ("nanosleep", "clock_nanosleep") or (name in ("select", "pselect6") and arguments[0] == 0) or _has_limit(name, arguments)
    return (name, arguments) if name is not None and sleeps else None


def _has_limit(name: str | None, arguments: tuple[int, ...]) -> bool:
    """Does it wait for another thread, a message, a descriptor or a signal, and not for longer than it was told?"""
    if name in _MS_AT:
        return 0 < arguments[_MS_AT[name]] & _UNSIGNED <= _MOST_MS
    if name == "rt_sigtimedwait":
        return bool(arguments[2])
    return name == "futex" and arguments[1] & _OF_FUTEX in (_WAIT, _WAIT_UNTIL) and bool(arguments[3])


def _left(call: tuple[str, tuple[int, ...]], memory: int, clock: Callable[[int], float]) -> float | None:
    name, arguments = call
    if name == "clock_nanosleep":
        number, flags, at = arguments[:3]
        if number not in _CLOCKS:
            return None
        told = _time(memory, at, 1e9)
        return told - clock(number) if flags & _ABSOLUTE else told
    if name == "nanosleep":
        return _time(memory, arguments[0], 1e9)
    if name in _MS_AT:
        return (arguments[_MS_AT[name]] & _UNSIGNED) / 1e3
    if name == "rt_sigtimedwait":
        return _time(memory, arguments[2], 1e9)
    if name == "futex":
        told = _time(memory, arguments[3], 1e9)
        number = _REALTIME if arguments[1] & _BY_REALTIME else _MONOTONIC
        return told - clock(number) if arguments[1] & _OF_FUTEX == _WAIT_UNTIL else told
    return _time(memory, arguments[4], 1e6 if name == "select" else 1e9) if arguments[4] else None


def _time(memory: int, address: int, parts: float) -> float:
    seconds, rest = struct.unpack("<qq", os.pread(memory, 16, address))
    return float(seconds + rest / parts)


def _offset(pid: int | str, number: int, proc: Path) -> float:
    """What the time namespace of a process adds to a clock."""
    for line in (read_text(proc / str(pid) / "timens_offsets", 512) or "").splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == _CLOCKS[number]:
            with contextlib.suppress(ValueError):
                return int(words[1]) + int(words[2]) / 1e9
    return 0.0
