"""The system call that a thread sleeps in, by its own name."""

from __future__ import annotations

from ray_rl_debug.snapshot import Thread

_SYSCALLS = {  # x86-64 numbers
    0: "read", 1: "write", 7: "poll", 17: "pread", 18: "pwrite", 23: "select", 34: "pause", 35: "sleep", 42: "connect", 43: "accept",
    44: "send", 45: "recv", 46: "send", 47: "recv", 61: "wait", 72: "fcntl", 73: "flock", 74: "fsync", 75: "fsync", 202: "futex",
    2: "open", 230: "sleep", 232: "epoll", 247: "wait", 257: "open", 270: "select", 271: "poll", 281: "epoll", 288: "accept", 441: "epoll",
}  # fmt: skip
_WCHANS = {
    "wait_for_partner": "open", "locks_lock_inode_wait": "flock", "__break_lease": "open", "do_wait": "wait", "hrtimer_nanosleep": "sleep",
    "do_nanosleep": "sleep", "wait_woken": "recv", "inet_csk_accept": "accept", "pipe_read": "read", "anon_pipe_read": "read",
    "pipe_write": "write", "anon_pipe_write": "write", "fifo_open": "open", "rpc_wait_bit_killable": "open", "unix_stream_read_generic": "recv",
    "unix_stream_data_wait": "recv", "sk_wait_data": "recv", "do_epoll_wait": "epoll", "do_poll": "poll", "poll_schedule_timeout": "poll",
    "do_sys_poll": "poll", "futex_wait_queue": "futex", "futex_do_wait": "futex", "futex_wait_queue_me": "futex", "do_select": "select",
    "inet_stream_connect": "connect", "inet_wait_for_connect": "connect", "nfs_wait_bit_killable": "open", "request_wait_answer": "open",
    "fuse_request_wait": "open", "__do_sys_pause": "pause",
}  # fmt: skip


def kernel_call(thread: Thread | None) -> str | None:
    """The system call a thread sleeps in, from its wait channel or call number; None when running or not readable."""
    if thread is None or thread.state == "R":
        return None
    wchan = (thread.wchan or "").partition(".")[0]  # compilers append .constprop.0 and the like
    if wchan in _WCHANS:
        return _WCHANS[wchan]
    return _SYSCALLS.get(thread.syscall) if thread.syscall is not None else None
