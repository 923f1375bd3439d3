"""One process at one moment as another tool wrote it: what every reader of foreign stacks gives back."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ray_rl_debug.model.snapshot import Local

CodePlace = tuple[str, str, int]
"""Function, file and line; the line is 0 and the file empty where the text has none."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A remark of a person or a tool; kinds as in `model.snapshot.Remark`."""

    kind: str
    text: str
    pid: int | None = None
    count: int | None = None
    ranks: tuple[int, ...] = ()
    name: str | None = None
    apart_s: float | None = None


class Task(msgspec.Struct, kw_only=True):
    """One asyncio task; `chain` outermost coroutine first."""

    name: str
    chain: list[CodePlace]
    number: int
    """Its address, or a number of its own in texts that have none."""
    tid: int | None = None
    awaits: list[int] = []
    """Numbers of the tasks that it waits for."""


class DumpThread(msgspec.Struct, kw_only=True):
    """One thread; `frames` innermost first."""

    frames: Sequence[CodePlace]
    tid: int | None = None
    name: str | None = None
    active: bool | None = None
    owns_gil: bool | None = None
    locals: tuple[Local, ...] = ()
    waits_for_gil: bool | None = None
    wchan: str | None = None
    """The kernel function in which it sleeps."""
    call: str | None = None
    """The system call in which it is."""
    calls: tuple[str, ...] | None = None
    """What the line of its innermost frame calls, where the text shows the source; ``__enter__`` for ``with lock:``."""


class HeldFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a process has open, as ``lsof`` lists it."""

    fd: int
    path: str
    device: str
    """As in ``/proc/locks``: hexadecimal."""
    inode: int
    writable: bool | None = None
    lock: str | None = None
    """``READ`` or ``WRITE``, where the process holds a lock on it."""


class Dump(msgspec.Struct, kw_only=True):
    """One process; `pid` is None when the text does not say."""

    threads: list[DumpThread]
    source: str
    pid: int | None = None
    title: str | None = None
    python: str | None = None
    label: str | None = None
    """What the text calls it when it has no pid: ``DP3``."""
    native: bool = False
    line: int | None = None
    """Where it begins in its text, from 1."""
    rank: int | None = None
    node: str | None = None
    ppid: int | None = None
    state: str | None = None
    """Letter of ``ps``: D, R, S, T, Z."""
    after_s: float | None = None
    """Seconds after the dump of the same process before it, where the text says so."""
    said: list[tuple[int, Said]] = []
    """Remarks on it, each with its line."""
    tasks: list[Task] = []
    files: list[HeldFile] = []
