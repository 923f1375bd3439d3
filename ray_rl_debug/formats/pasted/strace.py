"""``strace -p``: the system call in which a process or thread waits."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Row

_ATTACHED = re.compile(r"^\W{0,4}(?P<tool>strace: )?Process (?P<pid>\d{1,9}) attached")
"""Without the name of the tool before 4.14; gdb and others say so too."""
_REMARKED = re.compile(r"^\W{0,4}Process (?P<pid>\d{2,9}) ?\([^()\n]{3,200}(?:\(\)[^()\n]{0,100})?\):?$")
"""``Process 1960 (this one shows some activity):``, where somebody wrote a remark in place of "attached"."""
_NAMED = re.compile(r"\bstrace\b", re.IGNORECASE)
_CALL = re.compile(
    r"^\W{0,4}(?:\[pid +(?P<tid>\d{1,9})\] )?(?P<call>futex|futex_waitv|poll|ppoll|select|pselect6|epoll_wait|epoll_pwait2?|read"
    r"|readv|pread64|recvfrom|recvmsg|write"
    r"|writev|sendto|sendmsg|wait4|waitid|accept4?|connect|flock|fcntl|fsync|nanosleep|clock_nanosleep|restart_syscall|openat?|ioctl"
    r"|sched_yield|close|statx?)\("
)
_STOPPED = re.compile(r"^\W{0,4}(?:\[pid +(?P<tid>\d{1,9})\] )?--- stopped by SIG(?:STOP|TSTP|TTIN|TTOU) ---\s*$")
"""The process was stopped already when the tool came."""
_ASKED = re.compile(r"\bstrace (?:-\w{1,8} ){0,4}-\w{0,4}p ?(?P<pids>\d{1,9}(?:,\d{1,9}){0,64})\b")
"""Several processes are looked at; else those that it names later are threads of the one."""


class StraceReader:
    """Fed with the lines of one text."""

    def __init__(self) -> None:
        self._pid: int | None = None
        self._called: frozenset[int] = frozenset()
        """Those for which the tool was called."""
        self._is_named = False
        """Does the text say whose output follows?"""

    def feed(self, text: str) -> Row | None:
        """The call, when a process was attached before."""
        if "strace " in text and (asked := _ASKED.search(text)):
            self._called = frozenset(map(int, asked["pids"].split(",")))
            return None
        self._is_named = self._is_named or _NAMED.search(text) is not None
        attached = _ATTACHED.match(text) if " attached" in text else _REMARKED.match(text) if self._is_named else None
        if attached is not None and (self._is_named or attached["tool"] or int(attached["pid"]) in self._called):
            self._pid = int(attached["pid"])
            return None
        if self._pid is None:
            return None
        if "--- stopped" in text and _STOPPED.match(text) is not None:
            return Row(pid=self._pid, state="T")
        found = _CALL.match(text)
        if found is None:
            return None
        if found["tid"] and len(self._called) > 1 and int(found["tid"]) in self._called:
            return Row(pid=int(found["tid"]), tid=int(found["tid"]), call=found["call"])
        return Row(pid=self._pid, tid=int(found["tid"]) if found["tid"] else self._pid, call=found["call"])
