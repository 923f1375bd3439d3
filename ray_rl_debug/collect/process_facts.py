"""What the kernel tells of one process over the window: read at its start, read again at its end."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ray_rl_debug.bounded.calls import within
from ray_rl_debug.collect.cgroups import frozen_group, read_cgroup
from ray_rl_debug.collect.descriptors import Held, look_at_full, read_descriptors
from ray_rl_debug.collect.discover import FoundProcess
from ray_rl_debug.collect.environ import read_environment_now
from ray_rl_debug.collect.files import FileReader
from ray_rl_debug.collect.guard import Guard
from ray_rl_debug.collect.procfs import (
    PROC,
    Stat,
    ThreadClock,
    count_children,
    finish_threads,
    read_arguments,
    read_environment,
    read_stat,
    read_status,
    read_text,
    read_threads,
    whole,
)
from ray_rl_debug.collect.shared_futexes import read_shared_futexes
from ray_rl_debug.collect.sleep_limits import read_sleep_limits
from ray_rl_debug.collect.sockets import SocketReader
from ray_rl_debug.collect.stacks import Stacks
from ray_rl_debug.collect.stops import UNKNOWN, Stops, holder_of, tracer_of
from ray_rl_debug.collect.waited_fds import read_waited_fds
from ray_rl_debug.model.foreign_text import as_text
from ray_rl_debug.model.snapshot import Doors, EndedProcess, LogLine, Process, Thread
from ray_rl_debug.privacy.allowlist import allowed_arguments, allowed_environment

SAMPLED = frozenset({"ray-worker", "driver", "child", "named"})
DEEP = SAMPLED | {"other"}
ASLEEP_SHARE = 0.1
"""A thread that used less of the window than this sleeps most of the time."""
SETTLE_S = 0.01
MESSENGERS = ("ZMQbg/IO",)
"""Threads of libraries that read and write the connections of others; they have no stack in Python."""
SLOW_S = 2.0
"""For what touches files that a process uses; a file system that hangs holds every one of them."""
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


class Before(msgspec.Struct, frozen=True, kw_only=True):
    """A process at the start of the window."""

    found: FoundProcess
    threads: Mapping[int, ThreadClock]
    ticks: int
    io: dict[str, int]
    switches: int | None
    at: float
    was_dead: bool
    """Its parent may take its exit status at any moment, and nothing is left of it then."""
    exit_code: int | None
    holder: int | None
    """What holds it, if it is stopped, as `holder_of` tells."""
    full: Held | None = None
    """All its descriptors, if it had none left."""
    frozen_by: str | None = None
    """The control group that was frozen."""


def look(found: FoundProcess, proc: Path = PROC) -> Before:
    """The first look at a process."""
    at = time.monotonic()
    stat = read_stat(proc / str(found.pid)) or found.stat
    threads = read_threads(found.pid, proc)
    return Before(
        found=found,
        threads=threads,
        ticks=stat.ticks,
        io=_io(found.pid, proc),
        switches=_switches(found.pid, threads, proc),
        at=at,
        was_dead=stat.state in "ZX",
        holder=holder_of(found.pid, stat.state, proc),
        exit_code=_exit_code(found.pid, stat, proc),
        full=look_at_full(found.pid, proc),
        frozen_by=frozen_group(found.pid, proc),
    )


def has_stood(one: Before, proc: Path = PROC) -> bool:
    """Was it stopped at the first look, and did none of its threads run since? Who computes between two stops reads and writes nothing."""
    if one.holder is None or one.switches is None:
        return False
    pid = one.found.pid
    return _io(pid, proc) == one.io and _switches(pid, read_threads(pid, proc), proc) == one.switches


class Reader:
    """The second look at processes of one node, with what the samplers saw."""

    def __init__(self, doors: Doors, stacks: Stacks, logs: Mapping[int | None, tuple[LogLine, ...]], guard: Guard, proc: Path = PROC) -> None:
        self._doors = doors
        self._stacks = stacks
        self._logs = logs
        self._guard = guard
        self._proc = proc
        self._sockets = SocketReader(proc)
        self._files = FileReader(proc)
        self._stops = Stops(proc)
        self._boot_time_s = _boot_time(proc)

    def read(self, one: Before, *, quick: bool = False) -> Process | None:
        """All facts of a process; None when it is gone. `quick` leaves out sockets, files, descriptors and the environment of now."""
        pid, proc, call = one.found.pid, self._proc, self._guard.call
        stat = self._stops.read(pid, one.holder if has_stood(one, proc) else None)
        at = time.monotonic()
        if stat is None or stat.start_ticks != one.found.stat.start_ticks:
            return None
        facts = call("most facts", lambda: self._process(one, stat, at - one.at), None, pid=pid)
        if facts is None:
            return Process(pid=pid, ppid=stat.ppid, title=stat.comm, comm=stat.comm, kind=one.found.kind, state=_letter(stat))
        if quick:
            return facts
        deep = one.found.kind in DEEP
        now = (
            call("the environment now", lambda: within(SLOW_S, lambda: read_environment_now(pid, proc)), None, pid=pid)
            if deep and self._doors.memory is not False
            else None
        )
        return msgspec.structs.replace(
            facts,
            env_now=allowed_environment(now) if now is not None else None,
            sockets=call("sockets", lambda: self._sockets.read(pid), None, pid=pid),
            child_count=call("children", lambda: count_children(pid, proc), None, pid=pid) if deep else None,
            files=call("open files", lambda: within(SLOW_S, lambda: self._files.read(pid)), None, pid=pid) if deep else None,
            descriptors=call("descriptors", lambda: within(SLOW_S, lambda: read_descriptors(pid, one.full, self._sockets, proc)), None, pid=pid),
        )

    def ended(self, one: Before) -> EndedProcess:
        """A process that was there at the first look and is gone."""
        found = one.found
        title = allowed_arguments(found.arguments) or found.stat.comm
        started = self._started(one)
        return EndedProcess(
            pid=found.pid, ppid=found.stat.ppid, title=title, kind=found.kind, start_time_s=started, was_dead=one.was_dead, exit_code=one.exit_code
        )

    def _started(self, one: Before) -> float | None:
        return round(self._boot_time_s + one.found.stat.start_ticks * TICK_S, 2) if self._boot_time_s is not None else None

    def _process(self, one: Before, stat: Stat, window: float) -> Process:
        pid, proc, stacks = one.found.pid, self._proc, self._stacks
        status = read_status(pid, proc)
        after = read_threads(pid, proc)
        io = _io(pid, proc)
        environment = dict((read_environment(pid, proc) if self._doors.environ is not False else None) or ())
        switches = _switches(pid, after, proc)
        uid = status.get("Uid", "").split()
        return Process(
            pid=pid,
            ppid=stat.ppid,
            title=allowed_arguments(tuple(read_arguments(pid, proc)) or one.found.arguments) or stat.comm,
            comm=stat.comm,
            kind=one.found.kind,
            uid=int(uid[0]) if uid else None,
            start_time_s=self._started(one),
            state=_letter(stat),
            exit_code=_exit_code(pid, stat, proc),
            tracer_pid=tracer_of(pid, proc),
            nice=stat.nice,
            thread_count=stat.threads,
            rss_bytes=stat.rss_pages * os.sysconf("SC_PAGE_SIZE"),
            cpu_s=round((stat.ticks - one.ticks) * TICK_S, 3),
            window_s=round(window, 3),
            read_bytes=io["rchar"] - one.io["rchar"] if "rchar" in io and "rchar" in one.io else None,
            written_bytes=io["wchar"] - one.io["wchar"] if "wchar" in io and "wchar" in one.io else None,
            context_switches=max(0, switches - one.switches) if switches is not None and one.switches is not None else None,
            cgroup=read_cgroup(pid, proc),
            frozen_by=one.frozen_by if one.frozen_by is not None and frozen_group(pid, proc) == one.frozen_by else None,
            cwd=_link(proc / str(pid) / "cwd"),
            job_id=_job(environment.get("RAY_JOB_ID")),
            raylet_pid=int(environment["RAY_RAYLET_PID"]) if environment.get("RAY_RAYLET_PID", "").isdigit() else None,
            env=allowed_environment(environment.items()),
            python=stacks.python.get(pid),
            threads=self._guard.call("threads", lambda: self._threads(one, after, window), (), pid=pid),
            samples=stacks.samples.get(pid, ()),
            in_c=stacks.in_c.get(pid, ()),
            object_refs=stacks.object_refs.get(pid, ()),
            object_refs_before=stacks.object_refs_before.get(pid, ()),
            log_lines=self._logs.get(pid, ()),
        )

    def _threads(self, one: Before, after: dict[int, ThreadClock], window: float) -> tuple[Thread, ...]:
        pid = one.found.pid
        threads = finish_threads(pid, dict(one.threads), after, TICK_S, self._proc)
        if one.found.kind not in SAMPLED or self._doors.environ is False:
            return threads
        with_stack = {pid, *(t.tid for s in self._stacks.samples.get(pid, ()) for t in s.threads if t.tid is not None)}
        if any(t.tid in with_stack and t.state == "R" and (t.cpu_s or 0.0) < ASLEEP_SHARE * window for t in threads):
            # py-spy let go of it a moment ago, and it is still on its way back to sleep
            time.sleep(SETTLE_S)
            threads = finish_threads(pid, dict(one.threads), read_threads(pid, self._proc), TICK_S, self._proc)
        carry = {t.tid for t in threads if t.comm.startswith(MESSENGERS)}
        waited, asleep = read_waited_fds(pid, with_stack | carry, self._proc), read_sleep_limits(pid, with_stack, self._proc)
        at_futex = read_shared_futexes(pid, with_stack, self._proc)
        return tuple(
            msgspec.structs.replace(t, waits_on_fds=waited.get(t.tid), wakes_in_s=asleep.get(t.tid), in_shared=at_futex.get(t.tid)) for t in threads
        )


def _exit_code(pid: int, stat: Stat, proc: Path) -> int | None:
    """Of a dead process: its exit status, or the signal that ended it as a negative number. The kernel tells its owner and root only."""
    if stat.state not in "ZX" or stat.wait_status is None or stat.threads > 1:
        return None  # with threads only its first one has ended
    uid = read_status(pid, proc).get("Uid", "").split()
    if os.geteuid() != 0 and uid[:1] != [str(os.geteuid())]:
        return None
    signal = stat.wait_status & 0x7F
    return -signal if signal else stat.wait_status >> 8


def _io(pid: int, proc: Path) -> dict[str, int]:
    rows = (line.partition(": ") for line in (read_text(proc / str(pid) / "io", 4096) or "").splitlines())
    return {k: number for k, _, v in rows if (number := whole(v)) is not None}


def _switches(pid: int, threads: Mapping[int, ThreadClock], proc: Path) -> int | None:
    """Switches to all threads. The scheduler's own count of runs, read with the clocks anyway, else the sum of all status files."""
    slices = [t.slices for t in threads.values()]
    if slices and None not in slices:
        return sum(s for s in slices if s is not None)
    total = 0
    for tid in threads:
        rows = (line.split() for line in (read_text(proc / str(pid) / "task" / str(tid) / "status") or "").splitlines() if "ctxt_switches" in line)
        counts = [number for row in rows if len(row) == 2 and (number := whole(row[1])) is not None]
        if len(counts) != 2:
            return None
        total += sum(counts)
    return total if threads else None


def _job(text: str | None) -> str | None:
    """Ray starts spare workers before any job; their variable is all ones."""
    return text if text and text.strip("fF") else None


def _boot_time(proc: Path) -> float | None:
    boot = next((line.split()[1] for line in (read_text(proc / "stat", 1 << 20) or "").splitlines() if line.startswith("btime")), None)
    return float(boot) if boot else None


def _letter(stat: Stat) -> str | None:
    return stat.state if stat.state != UNKNOWN else None


def _link(path: Path) -> str | None:
    try:
        return as_text(os.readlink(path))
    except OSError:
        return None
