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
