"""One cheap look at the processes of this node: CPU time, page faults, title, state and step lines; no ptrace, no Ray, a few microseconds each.

Files below /proc stay open between the looks. A title is not read from a process in uninterruptible sleep: its memory may be locked.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from ray_rl_debug.collect.masking import mask
from ray_rl_debug.collect.procfs import PROC, read_environment
from ray_rl_debug.foreign_text import as_text

TITLE_BYTES = 200
TAIL_BYTES = 4096
MAX_PROCESSES = 400
"""Watched per node: three open files each."""
_STEP = re.compile(rb"(?:^|[^a-z])(?:global[_ ]?)?(?:step|iteration|iter)s?[^\w\n]{0,4}[:= #]\s*(\d{1,9})", re.IGNORECASE)
_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A process as it was found."""

    pid: int
    born: int
    """Start in clock ticks since boot; with the pid it names one process for ever."""
    kind: str
    """As `snapshot.Process.kind`."""
    ppid: int
    title: str
    job_id: str | None = None
    """From the environment it was started with; a spare worker gets its job later."""


class Sign(msgspec.Struct, frozen=True, array_like=True):
    """One process since the look before."""

    pid: int
    state: str
    cpu: float | None = None
    """Share of one core, with children that ended; None at the first look."""
    faults_per_s: float | None = None
    title: str | None = None
    """None: as before."""
    step: int | None = None
    """Largest step number in what was logged since."""
    logged_bytes: int = 0
    turned: bool = False
    """Its title was another one since, though it is as before now; seen only while something seems to stand still."""
    moved_bytes_per_s: float | None = None
    """To and from files, disks and other processes; read only while something stands still."""
    collectives: int | None = None
    """Of its rank so far, where torch's Flight Recorder or NCCL RAS tell; grows with each. Read only while something stands still."""


class GpuSign(msgspec.Struct, frozen=True, array_like=True):
    """One GPU at one moment."""

    index: int
    utilization: float | None = None
    """Share of time with a kernel, 0 to 1."""
    power_watts: float | None = None
    memory_bytes: int | None = None


class NodeReading(msgspec.Struct, frozen=True, kw_only=True):
    """All signs of one node."""

    span_s: float
    """Seconds since the reading before."""
    signs: tuple[Sign, ...]
    known: tuple[Known, ...] | None = None
    """All watched processes, when the set is not as before."""
    gpus: tuple[GpuSign, ...] | None = None


class _Open:
    """The open files of one process and what was read last."""

    def __init__(self, known: Known, proc: Path) -> None:
        self.known = known
        self.ticks: int | None = None
        self.faults = 0
        self.title = known.title
        self.raw_title: bytes | None = None
        base = proc / str(known.pid)
        self.stat = os.open(base / "stat", os.O_RDONLY | os.O_CLOEXEC)
        self.cmdline: int | None = None
        self.logs: list[list[int]] = []
        with contextlib.suppress(OSError):
            self.cmdline = os.open(base / "cmdline", os.O_RDONLY | os.O_CLOEXEC)
        seen = set()
        for number in ("1", "2"):
            with contextlib.suppress(OSError, ValueError):
                path = os.readlink(base / "fd" / number)
                if path.startswith("/") and not path.startswith(("/dev/", "/proc/")) and path not in seen:
                    seen.add(path)
                    log = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
                    self.logs.append([log, os.fstat(log).st_size])

    def close(self) -> None:
        for descriptor in (self.stat, self.cmdline, *(log for log, _ in self.logs)):
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.close(descriptor)


class SignReader:
    """Reads the signs of a set of processes, again and again."""

    def __init__(self, proc: Path = PROC, clock: Callable[[], float] = time.monotonic) -> None:
        self._proc = proc
        self._clock = clock
        self._open: dict[int, _Open] = {}
        self._read_at: float | None = None
        self._is_new_set = True

    def watch(self, processes: Iterable[Known]) -> None:
        """These processes from now on; those that were watched before keep their counters."""
        wanted = {p.pid: p for p in list(processes)[:MAX_PROCESSES]}
        for pid, old in list(self._open.items()):
            if pid not in wanted or (wanted[pid].born, wanted[pid].kind) != (old.known.born, old.known.kind):
                self._drop(pid)
        for pid, known in wanted.items():
            if pid not in self._open:
                with contextlib.suppress(OSError):
                    self._open[pid] = _Open(known, self._proc)
                    self._is_new_set = True

    def read(self) -> NodeReading:
        """The signs now. Processes that ended leave the set."""
        now = self._clock()
        span = now - self._read_at if self._read_at is not None else 0.0
        self._read_at = now
        signs = []
        for pid, one in list(self._open.items()):
            sign = self._sign(one, span)
            if sign is None:
                self._drop(pid)
            else:
                signs.append(sign)
        known = tuple(msgspec.structs.replace(o.known, title=o.title) for o in self._open.values()) if self._is_new_set else None
        self._is_new_set = False
        return NodeReading(span_s=span, signs=tuple(signs), known=known)

    def calls(self) -> dict[int, bytes]:
        """What the titles of processes in a Ray call were at the last reading, as the kernel gave them."""
        return {pid: o.raw_title for pid, o in self._open.items() if o.raw_title and o.known.kind == "ray-worker" and "." in o.title}

    def resend(self) -> None:
        """Let the next reading carry the whole set."""
        self._is_new_set = True

    def close(self) -> None:
        for pid in list(self._open):
            self._drop(pid)

    def _drop(self, pid: int) -> None:
        self._open.pop(pid).close()
        self._is_new_set = True

    def _sign(self, one: _Open, span: float) -> Sign | None:
        try:
            data = os.pread(one.stat, 1024, 0)
            rest = data[data.rindex(b")") + 2 :].split(None, 15)
            state = rest[0].decode()
            ticks = int(rest[11]) + int(rest[12]) + int(rest[13]) + int(rest[14])
            faults = int(rest[7])
        except (OSError, ValueError, IndexError):
            return None
        if state in "ZX":
            return None
        first = one.ticks is None
        cpu = None if first or span <= 0 else round((ticks - (one.ticks or 0)) * _TICK_S / span, 3)
        faulted = None if first or span <= 0 else round((faults - one.faults) / span, 1)
        one.ticks, one.faults = ticks, faults
        title = self._title(one) if state != "D" else None
        logged, step = _logged(one)
        return Sign(one.known.pid, state, cpu, faulted, title, step, logged)

    def _title(self, one: _Open) -> str | None:
        if one.cmdline is None:
            return None
        try:
            raw = os.pread(one.cmdline, TITLE_BYTES, 0)
        except OSError:
            return None
        if raw == one.raw_title:
            return None
        one.raw_title = raw
        text = mask(as_text(raw.split(b"\0", 1)[0]).strip())
        if not text or text == one.title or not text.startswith("ray::"):
            return None  # the arguments of other programs do not change, and may hold secrets
        one.title = text
        return text


def _logged(one: _Open) -> tuple[int, int | None]:
    """Bytes by which the logs of a process grew, and the largest step number in what is new."""
    grown, step = 0, None
    for log in one.logs:
        try:
            size = os.fstat(log[0]).st_size
            new = size - log[1]
            if new == 0:
                continue
            log[1] = size
            if new > 0:
                grown += new
                found = find_step(os.pread(log[0], min(new, TAIL_BYTES), size - min(new, TAIL_BYTES)))
                step = max(step or 0, found) if found is not None else step
        except OSError:
            continue
    return grown, step


def find_step(text: bytes) -> int | None:
    """The largest step number that some log lines tell: ``step: 12``, ``step:12 - actor/...``, ``Step 3/100``, ``iteration=7``."""
    numbers = [int(n) for n in _STEP.findall(text)]
    return max(numbers) if numbers else None


def first_look(pid: int, born: int, kind: str, ppid: int, arguments: tuple[str, ...], proc: Path = PROC) -> Known:
    """A process as `SignReader.watch` wants it."""
    environment = dict(read_environment(pid, proc) or ()) if kind in ("ray-worker", "child") else {}
    title = arguments[0] if arguments else ""
    title = title if title.startswith("ray::") else os.path.basename(title)[:40]
    return Known(pid=pid, born=born, kind=kind, ppid=ppid, title=mask(title), job_id=environment.get("RAY_JOB_ID"))
