"""``strace -p``: the system call in which a process or thread waits."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Row

_ATTACHED = re.compile(r"^\W{0,4}strace: Process (?P<pid>\d{1,9}) attached")
_CALL = re.compile(
    r"^\W{0,4}(?:\[pid +(?P<tid>\d{1,9})\] )?(?P<call>futex|futex_waitv|poll|ppoll|select|pselect6|epoll_wait|epoll_pwait2?|read"
    r"|readv|pread64|recvfrom|recvmsg|write"
    r"|writev|sendto|sendmsg|wait4|waitid|accept4?|connect|flock|fcntl|fsync|nanosleep|clock_nanosleep|restart_syscall|openat?|ioctl"
    r"|sched_yield|close|statx?)\("
)


class StraceReader:
    """Fed with the lines of one text."""

    def __init__(self) -> None:
        self._pid: int | None = None

    def feed(self, text: str) -> Row | None:
        """The call, when a process was attached before."""
        if "strace: Process" in text and (attached := _ATTACHED.match(text)):
            self._pid = int(attached["pid"])
            return None
        if self._pid is None:
            return None
        found = _CALL.match(text)
        if found is None:
            return None
        return Row(pid=self._pid, tid=int(found["tid"]) if found["tid"] else self._pid, call=found["call"])
