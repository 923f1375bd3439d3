"""All asyncio tasks of a live Python process, read from outside: it is neither stopped nor does it run any code of ours."""

from __future__ import annotations

import struct
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ray_rl_debug.bounded.garbage import no_collections
from ray_rl_debug.collect.async_tasks.memory import BadRead, Memory, ProcessSource, Source, Spent
from ray_rl_debug.collect.async_tasks.remote_inspection import can_inspect, inspect_remotely, merge
from ray_rl_debug.collect.async_tasks.runtime import Runtime, Unsupported, attach, find_version, native_threads
from ray_rl_debug.collect.async_tasks.tasks import Interpreter, Read
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, Gap

ATTEMPTS = 3
"""A task that moves while it is read is read again; after so many times only its outermost coroutine is told."""
BATCH = 64
"""Tasks that are read, then looked at again together."""
NONSENSE = (BadRead, struct.error, ValueError, LookupError, OverflowError)
"""What decoding memory that changes under us, or was never what it seemed, can raise."""
_HELD_KINDS = frozenset({"lock", "semaphore", "condition"})


def read_async_tasks(
    pid: int, *, deadline_s: float = 2.0, max_tasks: int = 20_000, proc: Path = Path("/proc")
) -> tuple[tuple[AsyncTask, ...] | None, Gap | None]:
    """The unfinished asyncio tasks of a process, and what could not be read of them.

    None without a gap: not a Python process. None with a gap: not readable, or a build whose memory we do not know. An empty tuple: no
    tasks, or asyncio is not even imported. Tasks with a gap: not all of them. A task that moved while it was read has ``stable`` False and
    only its outermost coroutine; otherwise ``stable`` is None, since one read cannot tell.
    """
    try:
        source = ProcessSource(pid, proc)
    except (FileNotFoundError, ProcessLookupError):  # the latter of a zombie
        return None, _gap(pid, gaps.PROCESS_GONE, "it ended")
    except OSError as problem:
        return None, _gap(pid, gaps.MEMORY_REFUSED, problem.strerror or "refused")
    try:
        before = _identity(pid, proc)
        with no_collections():
            found, gap = _read(source, pid, deadline_s, max_tasks, proc)
        if before is None or _identity(pid, proc) != before:
            return None, _gap(pid, gaps.PROCESS_GONE, "it ended or executed another program while it was read")
        return found, gap
    finally:
        source.close()


def _read(source: Source, pid: int, deadline_s: float, max_tasks: int, proc: Path) -> tuple[tuple[AsyncTask, ...] | None, Gap | None]:
    """By our own reader, and by CPython's as well where it can be asked."""
    end = time.monotonic() + deadline_s

    def own() -> tuple[tuple[AsyncTask, ...] | None, Gap | None]:
        return read_from(source, pid, deadline_s=max(0.0, end - time.monotonic()), max_tasks=max_tasks, proc=proc)

    found, gap = own()
    if not can_inspect(lambda: _version_of(source, end)) or time.monotonic() > end:
        return found, gap
    told = inspect_remotely(pid, deadline_s=end - time.monotonic(), max_tasks=max_tasks)
    if told is None:
        return found, gap
    if found is None and gap is not None:
        gap = msgspec.structs.replace(gap, what="asyncio tasks of other threads than the main one, and what all of them finally await")
    return merge(found, told, lambda: own()[0], native_threads(pid, proc)), gap


def _version_of(source: Source, end: float) -> tuple[int, int] | None:
    try:
        return find_version(Memory(source, end))
    except (*NONSENSE, Spent, OSError):
        return None


def read_from(
    source: Source, pid: int, *, deadline_s: float, max_tasks: int, proc: Path = Path("/proc")
) -> tuple[tuple[AsyncTask, ...] | None, Gap | None]:
    """As `read_async_tasks`, from any source of memory."""
    started = time.monotonic()
    try:
        memory = Memory(source, started + deadline_s)
        runtime = attach(memory)
        if runtime is None:
            return None, None
    except Unsupported as why:
        return None, _gap(pid, gaps.ASYNC_UNREAD, str(why))
    except Spent:
        return None, _gap(pid, gaps.ASYNC_UNREAD, f"not found within {deadline_s:g} s")
    except (*NONSENSE, OSError):
        return None, _gap(pid, gaps.ASYNC_UNREAD, "its memory is not that of a CPython we know")
    reading = _Reading(runtime, pid, proc, max_tasks)
    for _ in range(ATTEMPTS):
        for interpreter in runtime.interpreters:
            reading.read(interpreter)
        if not reading.may_have_missed:
            break
        memory.forget()
    return reading.result(deadline_s)


class _Reading:
    """One read of all interpreters of a process."""

    def __init__(self, runtime: Runtime, pid: int, proc: Path, max_tasks: int) -> None:
        self._runtime, self._pid, self._proc, self._max_tasks = runtime, pid, proc, max_tasks
        self._native = native_threads(pid, proc)
        self._found: list[AsyncTask] = []
        self._refused: str | None = None
        self._is_late = self._is_cut = self._has_asyncio = False
        self._unread = 0

    @property
    def may_have_missed(self) -> bool:
        """Was no task found where there may be some? The registry is empty for an instant while it is rebuilt."""
        return self._has_asyncio and not self._found and not self._is_late and self._refused is None

    def read(self, address: int) -> None:
        """Add the tasks of one interpreter."""
        reads: list[Read] = []
        interpreter: Interpreter | None = None
        try:
            interpreter = Interpreter(self._runtime, address, self._pid, self._proc, self._native)
            if interpreter.has_asyncio:
                self._has_asyncio = True
                self._read_tasks(interpreter, reads)
        except Unsupported as why:
            self._refused = str(why)
        except Spent:
            self._is_late = True
        except NONSENSE:
            self._refused = "its memory is not consistent, or changes faster than it can be read"
        if interpreter is not None and reads:
            self._found += _with_holders(reads, interpreter, self._runtime)

    def _read_tasks(self, interpreter: Interpreter, reads: list[Read]) -> None:
        left, current = self._registered(interpreter)
        for attempt in range(ATTEMPTS):
            left = self._read_round(interpreter, left, current, reads, is_last=attempt == ATTEMPTS - 1)
            if not left:
                break
            interpreter.forget()
            current = interpreter.current()

    def _registered(self, interpreter: Interpreter) -> tuple[list[int], frozenset[int]]:
        for attempt in range(ATTEMPTS):  # the set may be rebuilt under us
            try:
                left, complete = interpreter.registered(self._max_tasks)
            except NONSENSE:
                if attempt == ATTEMPTS - 1:
                    raise
                interpreter.forget()
            else:
                self._is_cut = self._is_cut or not complete
                return left, interpreter.current()
        raise BadRead("no registry")

    def _read_round(self, interpreter: Interpreter, addresses: list[int], current: frozenset[int], reads: list[Read], *, is_last: bool) -> list[int]:
        """Read these tasks; gives those that moved meanwhile, except in the last round, where they are told without their inner frames."""
        moved: list[int] = []
        memory = self._runtime.memory
        for start in range(0, len(addresses), BATCH):
            memory.check()
            batch: list[Read] = []
            for address in addresses[start : start + BATCH]:
                try:
                    found = interpreter.read(address, current)
                except NONSENSE:
                    moved.append(address)
                    self._unread += is_last
                    continue
                if found is not None:
                    batch.append(found)
            memory.look_again()
            for found in batch:
                if interpreter.is_unmoved(found):
                    reads.append(found)
                    continue
                moved.append(found.task.address)
                if is_last and found.links:
                    reads.append(_outermost(found))
                elif is_last:  # not even its coroutine was seen
                    self._unread += 1
        return [] if is_last else moved

    def result(self, deadline_s: float) -> tuple[tuple[AsyncTask, ...] | None, Gap | None]:
        found = tuple(self._found)
        if self._is_late:
            return found or None, _gap(self._pid, gaps.ASYNC_UNREAD, f"only {len(found)} were read within {deadline_s:g} s")
        if self._refused is not None:
            return found or None, _gap(self._pid, gaps.ASYNC_UNREAD, self._refused)
        if self._is_cut:
            return found, _gap(self._pid, gaps.TRUNCATED, f"more than {self._max_tasks}, or their list changed faster than it can be read")
        if self._unread > max(3, len(found) // 20):
            return found, _gap(self._pid, gaps.ASYNC_UNREAD, f"{self._unread} tasks were not consistent, or changed faster than they can be read")
        return found, None


def _outermost(found: Read) -> Read:
    """A task that moves: its coroutine is what it is, where it stands is not known."""
    head = found.task.chain[0]
    chain = (msgspec.structs.replace(head, line=None),)
    task = msgspec.structs.replace(found.task, chain=chain, awaited=Awaited(kind="unknown", detail="moving"), stable=False)
    return Read(task=task, links=[], marks=[])


def _with_holders(reads: list[Read], interpreter: Interpreter, runtime: Runtime) -> Iterable[AsyncTask]:
    """The tasks, with those that hold what others wait for, and without finished ones in what they wait for."""
    pending = {found.task.address for found in reads}
    holders: Mapping[int, list[int]] = _holders(reads, interpreter)
    for found in reads:
        awaited = found.task.awaited
        if awaited is not None and awaited.tasks and not pending.issuperset(awaited.tasks):
            awaited = msgspec.structs.replace(awaited, tasks=tuple(a for a in awaited.tasks if a in pending))
        if awaited is not None and holders and awaited.kind in _HELD_KINDS and awaited.address is not None and awaited.address in holders:
            awaited = msgspec.structs.replace(awaited, holders=tuple(holders[awaited.address]))
        yield found.task if awaited is found.task.awaited else msgspec.structs.replace(found.task, awaited=awaited)


def _holders(reads: list[Read], interpreter: Interpreter) -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    locks: dict[int, int] = {}
    for read in reads:
        for owner in read.held:
            lock = locks.get(owner)
            if lock is None:
                lock = locks[owner] = interpreter.lock_of(owner)
            if read.task.address not in found[lock]:
                found[lock].append(read.task.address)
    return found


def _identity(pid: int, proc: Path) -> tuple[str, str, str] | None:
    """Start time, and where program and stack begin: ``exec`` places them anew."""
    try:
        stat = (proc / str(pid) / "stat").read_text("utf-8", "replace")
        fields = stat.rpartition(") ")[2].split()
        return fields[19], fields[23], fields[25]
    except (OSError, IndexError):
        return None


def _gap(pid: int, id: str, reason: str) -> Gap:
    return Gap(id=id, where=f"/{pid}", what="asyncio tasks", reason=reason)
