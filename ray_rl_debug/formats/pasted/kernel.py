"""What the kernel says of processes: ``/proc/PID/stack``, ``/proc/PID/wchan``, ``/proc/PID/status``, and the heads that shells print over them.

Its own log shows the stacks of tasks that hang: a line with the task's state, then frames.
"""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Event, Frames, Gone, Head, Row

_FRAME = re.compile(
    r"^\W{0,24}\[<(?:0|[0-9a-fA-F]{8,16}|0x0)>\] (?P<function>[\w.]{1,120})\+0x(?P<at>[0-9a-f]{1,8})/0x(?P<size>[0-9a-f]{1,8})(?: \[\w{1,60}\])?\s*$"
)
_PATH = re.compile(r"/proc/(?P<pid>\d{1,9})/(?:task/(?P<tid>\d{1,9})/)?(?P<what>stack|wchan|status|stat|comm)\b(?P<rest>.{0,400})$")
_TASK = re.compile(r"^\W{0,12}/proc/(?P<pid>\d{1,9})/task/(?P<tid>\d{1,9})(?: [\w:/.-]{1,40})?\W{0,12}$")
"""A heading that names the folder of a thread, and perhaps its name."""
_WCHAN = re.compile(r"^(?: ?[:=]{1,3}(?:>|<==)?)?\s{0,20}(?P<wchan>[a-z_][\w.]{2,80})\s*$")
_STATUS_PID = re.compile(r"^(?P<key>Pid|PPid|Tgid|State|Name):\s{1,20}(?P<value>.{1,200})$")
LOG = "kernel log"
"""Source of a frame of the kernel's log. Not every stack in it is of a task that waits: the head says so."""
_LOG_ENDS = re.compile(r"^\s{0,4}(?:</TASK>|CPU: \d|RIP: |INFO: task |\S{1,40} invoked oom-killer)")
_TASK_STATE = re.compile(
    r"^\s{0,4}(?:task:(?P<comm>.{1,32}?)\s{1,20}state:(?P<state>[RSDTtZXI])\s.{0,60}?\bpid: ?(?P<pid>\d{1,9})\b"
    r"|(?P<comm2>[\w:.()/-]{1,16})\s{1,16}(?P<state2>[RSDTt])\s{1,16}(?:[0-9a-f]{8,16}|\d{1,6})\s{1,16}(?P<pid2>\d{1,9})\s{1,16}\d{1,9}"
    r" 0x[0-9a-f]{8}\s*$)"
)
"""Of the kernel's log, over the stack of a task: as it is written today, and as it was before Linux 5.11."""
_LOG_FRAME = re.compile(r"^\s{0,4}(?P<unsure>\? )?(?P<function>[A-Za-z_][\w.]{0,120})\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8}(?: \[\w{1,60}\])?\s*$")
_SCHEDULER = re.compile(r"^(?:__|io_|preempt_)?schedule(?:_timeout|_preempt_disabled|_hrtimeout(?:_range)?(?:_clock)?|_common)?(?:\.|$)")
_PAIR = re.compile(
    r"^\s{0,12}(?P<pid>\d{2,9})(?:\s|[:=] ?| - )\s{0,12}(?:(?P<state>[RSDTtZXI])[sLl+<N]{0,4}\s{1,12})?(?P<wchan>[a-z_][a-z0-9_.]{3,80})"
    r"(?:(?(state)\s{1,20}[\w.:/@-]{1,60}))?\s*$"
)
_OWN_PAIR = re.compile(
    r"^\W{0,12}(?:(?i:pid|proc|process|task|tid|thread)[ #:=]{1,3})?(?P<pid>\d{2,9})\b"
    r"(?: ?\([\w:. -]{1,40}\)|[ ,;]{1,4}(?i:comm|cmd|name)[=:] ?[\w:.()-]{1,40})?[ \t:=>,|;→-]{1,12}"
    r"(?:(?:(?i:state|stat)[=: ]{1,2})?(?P<state>[RSDTtZXI])[sLl+<N]{0,4}\b(?: \([a-z ]{3,20}\))?[ \t,;|:-]{1,12})?"
    r"(?:(?i:wchan|in|at)[=: ]{1,2})?(?P<wchan>[a-z_]\w{0,80}_\w{1,80}(?:\.[a-z]\w{0,40}(?:\.\d{1,4})?)?)"
    r"(?:[ \t,;|:-]{1,12}(?:(?i:state|stat)[=: ]{1,2})?(?P<state2>[RSDTtZXI])[sLl+<N]{0,4}(?: \([a-z ]{3,20}\))?)?\s*$"
)
"""The same as people's own loops print it: ``proc 4008 -> futex_wait_queue S``, ``pid=4008 state=D wchan=nfs_wait_bit``."""
_WAITS = re.compile(
    r"futex|wait|poll|sleep|select|lock|read|write|nfs|fuse|lustre|schedule|recv|accept|pipe|io_|page|uvm|nvidia|rwsem|mutex|ptrace|signal|ll_|cl_|rpc|ceph|gpfs"
)


def read(text: str) -> Event | None:
    """A kernel frame, the name of a file below /proc, or a wait channel."""
    if "[<" in text and (frame := _FRAME.match(text)):
        if int(frame["at"], 16) >= int(frame["size"], 16) > 0:
            return Gone()  # behind the end of that function: left on the stack by a call that has ended
        place = (frame["function"], "kernel", 0)
        return Frames(places=(place,), source="kernel", order="inner", is_certain=True, native=True)
    if "+0x" in text and (frame := _LOG_FRAME.match(text)):
        if frame["unsure"] or _SCHEDULER.match(frame["function"]):
            # An address that lay on the stack, perhaps of a call that has ended; or the scheduler, which /proc/PID/stack leaves out.
            return Gone()
        return Frames(places=((frame["function"], "kernel", 0),), source=LOG, order="inner", native=True)
    if ("state:" in text or " 0x" in text) and (task := _TASK_STATE.match(text)):
        pid = int(task["pid"] or task["pid2"])
        return Head(
            level="thread",
            source="kernel",
            order="inner",
            pid=pid,
            tid=pid,
            key=f"kernel {pid}",
            title=(task["comm"] or task["comm2"]).strip(),
            state=task["state"] or task["state2"],
        )
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
    found = _PAIR.match(text) or _OWN_PAIR.match(text)
    if found is None or not _WAITS.search(found["wchan"]):
        return None
    return Row(pid=int(found["pid"]), state=found["state"] or found.groupdict().get("state2"), wchan=found["wchan"])


def ends(text: str) -> bool:
    """Does a line of the kernel's log stand behind a stack, or over another one?"""
    return _LOG_ENDS.match(text) is not None


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
