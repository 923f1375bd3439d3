"""What only a process's memory tells of what it shares with others: torch's process groups."""

from __future__ import annotations

from ray_rl_debug.model.snapshot.fact import Fact


class TorchGroup(Fact, frozen=True, kw_only=True):
    """A process group of which a process is a member, as torch's own tables name it."""

    name: str
    """Torch's own: "0" for the default group, then counted. Two groups of one world are the same where name and members are."""
    size: int
    ranks: tuple[tuple[int, int, int], ...] | None = None
    """Members by their ranks in the default group, in order, as runs ``(first, last, step)``; None: too many, or not read."""
    rank: int | None = None
    """This process's own place in the group."""
    description: str | None = None
    """``group_desc``."""
    is_default: bool = False
    address: int | None = None
    """Of torch's Python object, which the local variable ``group`` of a collective shows."""

    @property
    def members(self) -> tuple[int, ...] | None:
        """The ranks one by one."""
        if self.ranks is None:
            return None
        return tuple(rank for first, last, step in self.ranks for rank in range(first, last + (1 if step > 0 else -1), step))


class TorchGroups(Fact, frozen=True, kw_only=True):
    """All groups of one process."""

    groups: tuple[TorchGroup, ...] = ()
    made: int | None = None
    """Groups that were made so far, also those without this process: ranks of one world that differ have not made the same ones."""
    init_method: str | None = None
    """Where the default group met: ``tcp://10.0.0.1:29500``, ``env://``; of files only the scheme."""


class SemaphoreUse(Fact, frozen=True, kw_only=True):
    """One process that took a semaphore between processes, or gave it back."""

    pid: int
    taken: int
    """How often it took it more than it gave it back; below zero where it gives what others have taken, as readers of a full queue do."""
    tid: int | None = None
    """The thread that took it last."""


class SharedSemaphore(Fact, frozen=True, kw_only=True):
    """A semaphore in shared memory that some thread waits for: a Lock, Semaphore or Queue of multiprocessing."""

    inode: int
    """Of its segment in /dev/shm, which every process that may use it maps."""
    waiters: tuple[tuple[int, int], ...]
    """Process and thread of those who wait."""
    value: int | None = None
    """Permits that are free."""
    maximum: int | None = None
    """1: a lock. A semaphore without bound has a very large one."""
    uses: tuple[SemaphoreUse, ...] = ()
    """Of those processes that have not given back as often as they took."""
    unread: tuple[int, ...] = ()
    """Processes that may use it, and whose own count was not found."""
