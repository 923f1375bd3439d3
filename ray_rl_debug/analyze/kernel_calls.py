"""The system call that a thread sleeps in, by its own name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from ray_rl_debug.model.snapshot import OpenFile, Socket, Thread
from ray_rl_debug.model.system_calls import call_name

_FAMILIES = {
    "read": "read", "write": "write", "readv": "read", "writev": "write", "pread64": "pread", "preadv": "pread", "pwrite64": "pwrite",
    "pwritev": "pwrite", "open": "open", "openat": "open", "openat2": "open", "fsync": "fsync", "fdatasync": "fsync", "fcntl": "fcntl",
    "flock": "flock", "poll": "poll", "ppoll": "poll", "select": "select", "pselect6": "select", "epoll_wait": "epoll", "epoll_pwait": "epoll",
    "epoll_pwait2": "epoll", "pause": "pause", "rt_sigtimedwait": "pause", "rt_sigsuspend": "pause",
    "nanosleep": "sleep", "clock_nanosleep": "sleep", "connect": "connect", "accept": "accept",
    "accept4": "accept", "sendto": "send", "sendmsg": "send", "sendmmsg": "send", "recvfrom": "recv", "recvmsg": "recv", "recvmmsg": "recv",
    "msgrcv": "message", "msgsnd": "message", "mq_timedreceive": "message", "mq_timedsend": "message",
    "wait4": "wait", "waitid": "wait", "futex": "futex", "futex_waitv": "futex", "semop": "semaphore", "semtimedop": "semaphore",
}  # fmt: skip
_WCHANS = {
    "wait_for_partner": "open", "locks_lock_inode_wait": "flock", "__break_lease": "open", "do_wait": "wait", "hrtimer_nanosleep": "sleep",
    "do_nanosleep": "sleep", "wait_woken": "recv", "n_tty_read": "read", "inet_csk_accept": "accept", "pipe_read": "read", "anon_pipe_read": "read",
    "pipe_write": "write", "anon_pipe_write": "write", "fifo_open": "open", "rpc_wait_bit_killable": "open", "unix_stream_read_generic": "recv",
    "unix_stream_data_wait": "recv", "sk_wait_data": "recv", "do_epoll_wait": "epoll", "do_poll": "poll", "poll_schedule_timeout": "poll",
    "do_sys_poll": "poll", "futex_wait_queue": "futex", "futex_do_wait": "futex", "futex_wait_queue_me": "futex", "do_select": "select",
    "inet_stream_connect": "connect", "inet_wait_for_connect": "connect", "nfs_wait_bit_killable": "open", "request_wait_answer": "open",
    "fuse_request_wait": "open", "__do_sys_pause": "pause", "wb_wait_for_completion": "fsync", "jbd2_log_wait_commit": "fsync",
    "folio_wait_writeback": "fsync", "wait_on_page_writeback": "fsync", "txg_wait_synced": "fsync", "xlog_wait_on_iclog": "fsync",
    "cl_sync_io_wait": "read", "inotify_read": "read", "timerfd_read": "read",
    "n_tty_write": "write", "ep_poll": "epoll",
}  # fmt: skip

_OF_MOUNTS = frozenset({"rpc_wait_bit_killable", "nfs_wait_bit_killable", "request_wait_answer", "fuse_request_wait"})
"""Where any call on a file of a mount sleeps: its own name tells more."""
_FOR_PARTNER = frozenset({"wait_for_partner", "fifo_open"})
_C_FUNCTIONS = {
    "recv": "recv", "send": "send", "pread": "pread", "pwrite": "pwrite", "wait": "wait", "waitpid": "wait", "wait3": "wait", "sleep": "sleep",
    "usleep": "sleep",
}  # fmt: skip


def kernel_call(thread: Thread | None) -> str | None:
    """The system call a thread sleeps in, from its wait channel or call number; None when running or not readable."""
    if thread is None or thread.state == "R":
        return None
    return _call(thread.wchan, thread.call, thread.syscall, thread.syscall_arg0 == 0, bool(thread.waits_on_fds))


@lru_cache(maxsize=1 << 12)
def _call(wchan: str | None, call: str | None, number: int | None, is_of_0: bool, has_fds: bool) -> str | None:
    """Threads of one machine sleep in few ways, however many they are."""
    name = _call_name(call, number)
    if is_of_0 and name in ("select", "pselect6"):
        return "sleep"  # no descriptor: time.sleep is made so before Python 3.11
    wchan = (wchan or "").partition(".")[0]  # compilers append .constprop.0 and the like
    if name == "restart_syscall" and wchan not in _WCHANS and not has_fds:
        return "sleep"  # the kernel goes on so with waits that have a time limit, after a look has stopped them
    named = _FAMILIES.get(name or "")
    if wchan in _WCHANS and not (named and wchan in _OF_MOUNTS):
        return _WCHANS[wchan]
    return named


def at_mount(thread: Thread | None) -> str | None:
    """The wait channel of a thread that sleeps in some call on a file of a mount, where the call itself is not told."""
    wchan = (thread.wchan or "").partition(".")[0] if thread is not None and thread.state != "R" else ""
    return wchan if thread is not None and wchan in _OF_MOUNTS and not _FAMILIES.get(_name(thread) or "") else None


def opens_named_pipe(thread: Thread | None) -> bool:
    """Does it open a named pipe whose other end nobody has open? Linux waits in these functions for nothing else."""
    return thread is not None and thread.state != "R" and (thread.wchan or "").partition(".")[0] in _FOR_PARTNER


def descriptor(thread: Thread | None) -> int | None:
    """The descriptor in whose call a thread sleeps, of calls that have one; None: not told, or it sleeps in none or in several."""
    if thread is None or kernel_call(thread) not in _ON_ONE:
        return None
    fds = thread.waits_on_fds or ()
    return thread.syscall_arg0 if thread.syscall_arg0 is not None or len(fds) != 1 else fds[0]


def told_by_files(thread: Thread, files: Sequence[OpenFile]) -> Thread:
    """A thread as it is, but for one that waits at a terminal or for what the kernel itself tells: it sleeps where readers of sockets do."""
    if kernel_call(thread) not in _AT_FILES:
        return thread  # most threads, and cheaply told
    if (told := _of_kernel(thread, files)) is not None:
        return told
    if (thread.wchan or "").partition(".")[0] != "wait_woken":
        return thread
    fd = descriptor(thread)
    is_terminal = fd is not None and any(f.fd == fd and TERMINAL.match(f.path) for f in files)
    writes = _FAMILIES.get(_name(thread) or "") == "write"
    return msgspec.structs.replace(thread, wchan="n_tty_write" if writes else "n_tty_read") if is_terminal else thread


def _of_kernel(thread: Thread, files: Sequence[OpenFile]) -> Thread | None:
    """A thread that waits for news of files, for a moment, or for the end of a process, each at a descriptor, as if it had a call for that."""
    if thread.waits_on_fds is None and thread.syscall_arg0 is None:
        return None
    fds = thread.waits_on_fds or tuple(fd for fd in (descriptor(thread),) if fd is not None)
    held = [f for f in files if f.fd in fds and f.fd is not None]
    kinds = {f.kind for f in held}
    if len(held) < len(fds) or not kinds or not kinds <= {"inotify", "timerfd", "pidfd", *_TO_WAKE}:
        return None
    fires = min((f.fires_in_s for f in held if f.fires_in_s is not None), default=None)
    wakes = min((s for s in (fires, thread.wakes_in_s) if s is not None), default=None)
    if "inotify" in kinds:
        gone = all(f.watches == 0 for f in held if f.kind == "inotify")
        return msgspec.structs.replace(thread, wchan=NO_NEWS if gone else NEWS, wakes_in_s=wakes)
    if "pidfd" in kinds:
        pids = [f.of_pid for f in held if f.kind == "pidfd"]
        return msgspec.structs.replace(thread, wchan="do_wait", syscall_arg0=pids[0] if len(pids) == 1 else None, wakes_in_s=wakes)
    return msgspec.structs.replace(thread, wchan=TIMER, wakes_in_s=wakes) if "timerfd" in kinds else None


def told_by_sockets(thread: Thread, sockets: Sequence[Socket]) -> Thread:
    """A thread as it is, but for one that waits for all at once of several connections that its process has made: it waits for their other ends."""
    if not thread.waits_on_fds or kernel_call(thread) != "epoll":
        return thread
    fds = set(thread.waits_on_fds)
    # where it listens; and what it has accepted, should that not have been read: several share an address then, and clients of Unix have none
    count = Counter(s.local for s in sockets)
    served = {s.local for s in sockets if s.local and (s.state == "LISTEN" or s.family == "unix" or count[s.local] > 1)}
    ends = {s.fd for s in sockets if s.state == "ESTABLISHED" and (s.remote or s.peer_inode) and s.fd is not None and s.local not in served}
    own = {s.inode for s in sockets if s.inode is not None}
    paired = any(s.fd in fds and s.peer_inode in own for s in sockets if s.peer_inode is not None)  # by which another thread wakes it
    return msgspec.structs.replace(thread, wchan=CONNECTIONS) if fds <= ends and not paired else thread


CONNECTIONS = "ep_poll.connections"
"""Wait channel of who waits for any of several connections."""
NEWS, NO_NEWS, TIMER = "inotify_read", "inotify_read.none", "timerfd_read"
"""Wait channels of who waits for news of files, of none any more, and for a moment."""
_TO_WAKE = frozenset({"eventfd", "pipe"})
"""By which another thread of a process may end such a wait."""
TERMINAL = re.compile(r"/dev/(pts/\d+|pts/ptmx|ptmx|tty\w*|console)$")
_ON_ONE = frozenset({"recv", "send", "read", "connect", "write"})
_AT_FILES = frozenset({"read", "recv", "poll", "select"})
"""Calls that may wait for a terminal, or for what the kernel itself tells."""


def family(name: str) -> str | None:
    """The family of a system call, or of the function of the C library that makes it: ``recvfrom`` and ``recv`` are ``recv``."""
    return _FAMILIES.get(name) or _C_FUNCTIONS.get(name)


def _name(thread: Thread) -> str | None:
    return _call_name(thread.call, thread.syscall)


def _call_name(call: str | None, number: int | None) -> str | None:
    """Snapshots of earlier versions hold the number only; they were taken on x86-64."""
    return call if call is not None or number is None else call_name(number, "x86_64")
