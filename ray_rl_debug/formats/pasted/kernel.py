"""What the kernel says of processes: ``/proc/PID/stack``, ``/proc/PID/wchan``, ``/proc/PID/status``, and the heads that shells print over them."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Event, Frames, Head, Row

_FRAME = re.compile(r"^\W{0,4}\[<(?:0|[0-9a-fA-F]{8,16}|0x0)>\] (?P<function>[\w.]{1,120})\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8}(?: \[\w{1,60}\])?\s*$")
_PATH = re.compile(r"/proc/(?P<pid>\d{1,9})/(?:task/(?P<tid>\d{1,9})/)?(?P<what>stack|wchan|status|stat|comm)\b(?P<rest>.{0,400})$")
_TASK = re.compile(r"^\W{0,12}/proc/(?P<pid>\d{1,9})/task/(?P<tid>\d{1,9})(?: [\w:/.-]{1,40})?\W{0,12}$")
"""A heading that names the folder of a thread, and perhaps its name."""
_WCHAN = re.compile(r"^(?: ?[:=]{1,3}(?:>|<==)?)?\s{0,20}(?P<wchan>[a-z_][\w.]{2,80})\s*$")
_STATUS_PID = re.compile(r"^(?P<key>Pid|PPid|Tgid|State|Name):\s{1,20}(?P<value>.{1,200})$")
_PAIR = re.compile(
    r"^\s{0,12}(?P<pid>\d{2,9})(?:\s|[:=] ?| - )\s{0,12}(?:(?P<state>[RSDTtZXI])[sLl+<N]{0,4}\s{1,12})?(?P<wchan>[a-z_][a-z0-9_.]{3,80})\s*$"
)
_WAITS = re.compile(
    r"futex|wait|poll|sleep|select|lock|read|write|nfs|fuse|lustre|schedule|recv|accept|pipe|io_|page|uvm|nvidia|rwsem|mutex|ptrace|signal|ll_|cl_|rpc|ceph|gpfs"
)


def read(text: str) -> Event | None:
    """A kernel frame, the name of a file below /proc, or a wait channel."""
    if "[<" in text and (frame := _FRAME.match(text)):
        place = (frame["function"], "kernel", 0)
        return Frames(places=(place,), source="kernel", order="inner", is_certain=True, native=True)
    if "/proc/" in text and (path := _PATH.search(text)):
        pid = int(path["pid"])
        tid = int(path["tid"]) if path["tid"] else None
        if path["what"] == "wchan" and (told := _WCHAN.match(path["rest"])):
            return Row(pid=pid, tid=tid, wchan=told["wchan"])
        if path["what"] == "stack":
            return Head(level="thread", source="kernel", order="inner", pid=pid, tid=tid or pid, key=f"kernel {tid or pid}")
        return Head(level="label", pid=pid)
    if "/task/" in text and (task := _TASK.match(text)):
        pid, tid = int(task["pid"]), int(task["tid"])
        return Head(level="thread", source="kernel", order="inner", pid=pid, tid=tid, key=f"kernel {tid}")
    return None


def pair(text: str) -> Row | None:
    """``4008 futex_wait_queue``: a number and where that process sleeps, as shell loops print it."""
    found = _PAIR.match(text)
    if found is None or not _WAITS.search(found["wchan"]):
        return None
    return Row(pid=int(found["pid"]), state=found["state"], wchan=found["wchan"])


def asked_status(text: str) -> int | None:
    """The process whose status a command asks for: ``grep State /proc/12/status``."""
    path = _PATH.search(text) if "/status" in text else None
    return int(path["pid"]) if path is not None and path["what"] == "status" else None


def status(text: str) -> tuple[str, str] | None:
    """One line of ``/proc/PID/status``: ``("State", "D")``."""
    found = _STATUS_PID.match(text)
    if found is None:
        return None
    value = found["value"].strip()
    return (found["key"], value[:1] if found["key"] == "State" else value)
