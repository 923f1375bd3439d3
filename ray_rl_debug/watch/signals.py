"""One cheap look at the processes of this node: CPU time, page faults, title, state and step lines; no ptrace, no Ray, a few microseconds each.

Files below /proc stay open between the looks, as far as descriptors go. A title is not read from a process in uninterruptible sleep: its memory
may be locked.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from ray_rl_debug.bounded.calls import within
from ray_rl_debug.bounded.opening import open_descriptor
from ray_rl_debug.collect.mounts import read_mounts
from ray_rl_debug.collect.procfs import PROC, read_environment
from ray_rl_debug.model.foreign_text import as_text
from ray_rl_debug.privacy.masking import mask

T = TypeVar("T")

TITLE_BYTES = 200
TAIL_BYTES = 4096
MAX_PROCESSES = 400
"""Watched per node."""
MAX_DESCRIPTORS = 1 << 14
TITLES_S, LOG_S = 0.5, 0.5
"""For the titles of all processes, and for one log on a network mount."""
_STEP = re.compile(rb"(?:^|[^a-z])(?:global[_ ]?)?(?:step|iteration|iter)s?[^\w\n]{0,4}[:= #]\s*(\d{1,9})", re.IGNORECASE)
_OWN_TITLE = re.compile(r"[A-Za-z_]\w*::")
"""A title that a process gave itself: ``ray::``, ``VLLM::EngineCore``, ``sglang::scheduler``."""
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


class _Log:
    """What a process prints, where that is a regular file. A FIFO is never opened: we would be its reader."""

    def __init__(self, path: str, is_remote: bool) -> None:
        self._path = path
        self._is_remote = is_remote
        self._size = self._call(lambda: self._open_and(lambda fd: os.fstat(fd).st_size))

    def grown(self) -> tuple[int, int | None]:
        """Bytes by which it grew since the last look, and the largest step number in what is new. Raises OSError."""
        size = self._call(lambda: os.stat(self._path).st_size)
        new, self._size = size - self._size, size
        if new <= 0:
            return 0, None
        tail = min(new, TAIL_BYTES)
        return new, find_step(self._call(lambda: self._open_and(lambda fd: os.pread(fd, tail, size - tail))))

    def _open_and(self, function: Callable[[int], T]) -> T:
        descriptor = open_descriptor(self._path, follow=True)
        try:
            return function(descriptor)
        finally:
            os.close(descriptor)

    def _call(self, function: Callable[[], T]) -> T:
        return within(LOG_S, function) if self._is_remote else function()


class _Open:
    """The open files of one process and what was read last."""

    def __init__(self, known: Known, proc: Path, *, keep: bool) -> None:
        self.known = known
        self.ticks: int | None = None
        self.faults = 0
        self.title = known.title
        self.raw_title: bytes | None = None
        self._base = base = proc / str(known.pid)
        self._kept: dict[str, int] = {}
        self.is_kept = keep
        """Are its files open? A descriptor of a process that ended gives an error; its number may name another."""
        self.is_asked = False
        """Has it been asked for its title, and not answered yet?"""
        for name in ("stat", "cmdline") if keep else ():
            try:
                self._kept[name] = os.open(base / name, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                self.is_kept = False  # no descriptors are left
        os.stat(base)  # raises when it has ended
        self.logs = list(_logs(base, proc, known.pid))

    def read(self, name: str, size: int) -> bytes:
        """One of its files, from a descriptor that is kept or by its name. Raises OSError."""
        kept = self._kept.get(name)
        if kept is not None:
            return os.pread(kept, size, 0)
        descriptor = os.open(self._base / name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, size)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        for descriptor in self._kept.values():
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _logs(base: Path, proc: Path, pid: int) -> Iterator[_Log]:
    mounts, seen = None, set()
    for number in ("1", "2"):
        with contextlib.suppress(OSError, ValueError):
            path = os.readlink(base / "fd" / number)
            if path.startswith("/") and not path.startswith(("/dev/", "/proc/")) and path not in seen:
                seen.add(path)
                mounts = mounts or read_mounts(pid, proc)
                # by its descriptor: the name may mean another file here, or another one tomorrow
                yield _Log(f"{base}/fd/{number}", mounts.network(path) is not None)


class SignReader:
    """Reads the signs of a set of processes, again and again."""

    def __init__(self, proc: Path = PROC, clock: Callable[[], float] = time.monotonic) -> None:
        self._proc = proc
        self._clock = clock
        self._open: dict[int, _Open] = {}
        self._read_at: float | None = None
        self._is_new_set = True
        self._kept_at_most = _raise_limit() // 2 // 2

    def watch(self, processes: Iterable[Known]) -> None:
        """These processes from now on; those that were watched before keep their counters."""
        wanted = {p.pid: p for p in list(processes)[:MAX_PROCESSES]}
        for pid, old in list(self._open.items()):
            if pid not in wanted or (wanted[pid].born, wanted[pid].kind) != (old.known.born, old.known.kind):
                self._drop(pid)
        for pid, known in wanted.items():
            if pid not in self._open:
                with contextlib.suppress(OSError):
                    self._open[pid] = _Open(known, self._proc, keep=len(self._open) < self._kept_at_most)
                    self._is_new_set = True

    def read(self) -> NodeReading:
        """The signs now. Processes that ended leave the set."""
        now = self._clock()
        span = now - self._read_at if self._read_at is not None else 0.0
        self._read_at = now
        signs = [sign for one in list(self._open.values()) if (sign := self._sign(one, span)) is not None]
        for pid in self._open.keys() - {s.pid for s in signs}:
            self._drop(pid)
        titles = self._titles([self._open[s.pid] for s in signs if s.state != "D"])
        signs = [msgspec.structs.replace(s, title=titles[s.pid]) if s.pid in titles else s for s in signs]
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
            data = one.read("stat", 1024)
            rest = data[data.rindex(b")") + 2 :].split(None, 20)
            if not one.is_kept and int(rest[19]) != one.known.born:
                return None  # its number names another process now
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
        logged, step = _logged(one)
        return Sign(one.known.pid, state, cpu, faulted, None, step, logged)

    def _titles(self, them: Sequence[_Open]) -> dict[int, str]:
        """New titles. They are read under a lock of the process's memory: one that does not answer in time is asked again when it has."""
        answers: list[tuple[_Open, bytes]] = []
        is_late = threading.Event()

        def ask() -> None:
            for one in them:
                if one.is_asked:
                    continue
                one.is_asked = True
                with contextlib.suppress(OSError):
                    answers.append((one, one.read("cmdline", TITLE_BYTES)))
                one.is_asked = False
                if is_late.is_set():
                    return

        with contextlib.suppress(TimeoutError):
            within(TITLES_S, ask)
        is_late.set()
        return {one.known.pid: title for one, raw in tuple(answers) if (title := _new_title(one, raw)) is not None}


def _new_title(one: _Open, raw: bytes) -> str | None:
    if raw == one.raw_title:
        return None
    one.raw_title = raw
    text = mask(as_text(raw.split(b"\0", 1)[0]).strip())
    if not text or text == one.title or not _OWN_TITLE.match(text):
        return None  # the arguments of other programs do not change, and may hold secrets
    one.title = text
    return text


def _logged(one: _Open) -> tuple[int, int | None]:
    """Bytes by which the logs of a process grew, and the largest step number in what is new."""
    grown, step = 0, None
    for log in list(one.logs):
        try:
            new, found = log.grown()
        except TimeoutError:
            one.logs.remove(log)  # its file system hangs
            continue
        except OSError:
            continue
        grown += new
        step = max(step or 0, found) if found is not None else step
    return grown, step


def _raise_limit() -> int:
    """As many descriptors as this process may have: each watched process takes two, and 1,024 is the usual start."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


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
