"""System calls by name: their numbers differ from one kind of machine to the other, so they are translated where they are read."""

from __future__ import annotations

from collections.abc import Mapping

_NUMBERS: Mapping[str, Mapping[int, str]] = {
    "x86_64": {
        0: "read", 1: "write", 2: "open", 7: "poll", 17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev", 23: "select", 24: "sched_yield",
        34: "pause", 35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 61: "wait4",
        65: "semop", 69: "msgsnd", 70: "msgrcv", 72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync",
        128: "rt_sigtimedwait", 130: "rt_sigsuspend", 202: "futex", 219: "restart_syscall", 220: "semtimedop",
        230: "clock_nanosleep", 232: "epoll_wait", 242: "mq_timedsend", 243: "mq_timedreceive",
        247: "waitid", 257: "openat", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait",
        288: "accept4", 295: "preadv", 296: "pwritev", 299: "recvmmsg", 307: "sendmmsg", 437: "openat2", 441: "epoll_pwait2", 449: "futex_waitv",
    },
    "aarch64": {
        22: "epoll_pwait", 25: "fcntl", 32: "flock", 56: "openat", 63: "read", 64: "write", 65: "readv", 66: "writev", 67: "pread64",
        68: "pwrite64", 69: "preadv", 70: "pwritev", 72: "pselect6", 73: "ppoll", 82: "fsync", 83: "fdatasync", 95: "waitid", 98: "futex",
        101: "nanosleep", 115: "clock_nanosleep", 124: "sched_yield", 128: "restart_syscall", 133: "rt_sigsuspend", 137: "rt_sigtimedwait",
        182: "mq_timedsend", 183: "mq_timedreceive", 188: "msgrcv", 189: "msgsnd", 192: "semtimedop", 193: "semop", 202: "accept",
        203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 242: "accept4", 243: "recvmmsg", 260: "wait4",
        269: "sendmmsg", 437: "openat2", 441: "epoll_pwait2", 449: "futex_waitv",
    },
}  # fmt: skip
"""Calls in which threads wait, by the machine's name as ``uname -m`` prints it; from the kernel's own headers (unistd_64.h, asm-generic/unistd.h)."""


def call_name(number: int, machine: str) -> str | None:
    """``futex`` for 202 on x86_64; None for a call that nobody waits in, and on a kind of machine that is not known."""
    return _NUMBERS.get(machine, {}).get(number)
