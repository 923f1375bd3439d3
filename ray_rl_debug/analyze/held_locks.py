"""Who has the lock that a thread wants, as the source of their lines tells.

A plain lock does not know its owner, and threads of a process that work may be its owner or not. Where the source names the lock that a line takes,
and the ``with`` blocks in which the lines of all threads lie, the owner is known: the thread inside of the block. A name with a class in it means
one lock for each object. Two threads inside of such blocks may have two of them, and then nobody is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.places import Place
from ray_rl_debug.model.snapshot import Frame

Lock = tuple[str, str]
"""The file, and the name that it has there."""


class _Thread(Protocol):
    @property
    def place(self) -> Place: ...

    @property
    def frames(self) -> tuple[Frame, ...]: ...


Thread = TypeVar("Thread", bound=_Thread)


def wanted(thread: _Thread) -> Lock | None:
    """The lock at which a thread waits; None where it waits at none, or the source does not name it."""
    at = taking(thread)
    return (at.file, at.wants) if at is not None and at.wants is not None else None


def taking(thread: _Thread) -> Frame | None:
    """The frame that takes the lock at which a thread waits."""
    own = thread.place.own
    return thread.frames[own] if thread.place.kind is Kind.LOCK and own is not None and thread.frames[own].wants is not None else None


def keeping(thread: _Thread, lock: Lock) -> Frame | None:
    """The frame of a thread that lies in a block of a lock."""
    return next((f for f in thread.frames if f.under and f.file == lock[0] and lock[1] in f.under), None)


def holder(thread: Thread, threads: Iterable[Thread]) -> Thread | None:
    """The one of these threads that has the lock at which a thread waits, perhaps that one itself; None where no thread or several may have it."""
    lock = wanted(thread)
    if lock is None:
        return None
    found = [t for t in threads if keeping(t, lock) is not None]
    return found[0] if len(found) == 1 else None


def lock_ring(first: Thread, threads: Sequence[Thread]) -> tuple[Thread, ...]:
    """Threads that wait for each other's locks, to which the waiting of the first leads: each wants what the next one has. One may want its own."""
    way = [first]
    while (following := holder(way[-1], threads)) is not None:
        if following in way:
            return tuple(way[way.index(following) :])
        way.append(following)
    return ()
