"""What of a node was not seen, as gaps of its snapshot."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ray_rl_debug.collect.discover import Discovery
from ray_rl_debug.collect.permissions import remedy
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Doors, Gap

_MAX_NAMED = 4
"""Processes by their numbers in one gap."""


def named(gap: Gap, name: str, cure: str | None) -> Gap:
    """A collector's gap with the node's name, and with the command that opens a closed door."""
    closed = gap.id in (gaps.STACKS_REFUSED, gaps.MEMORY_REFUSED)
    return msgspec.structs.replace(gap, where=f"{name}{gap.where}", remedy=gap.remedy or (cure if closed else None))


def closed_doors(name: str, doors: Doors, count: int) -> list[Gap]:
    """What we may not read of `count` processes."""
    cure = remedy(doors)
    found = []
    for is_open, gap_id, what in (
        (doors.memory, gaps.MEMORY_REFUSED, "memory (environment now, ObjectRefs, asyncio tasks)"),
        (doors.environ, gaps.DESCRIPTORS_REFUSED, "environment, sockets and open files"),
    ):
        if is_open is False and count:
            found.append(Gap(id=gap_id, where=name, what=f"{what} of {count} processes", reason=doors.setting or "refused", remedy=cure))
    return found


def hidden_driver(name: str, discovery: Discovery, cure: str | None) -> list[Gap]:
    """The driver of the job, where it may be a process that we may not read."""
    if not discovery.hidden or any(f.kind == "driver" for f in discovery.found):
        return []
    reason = f"{discovery.hidden} Python processes here may be it; we may not read them, and no --pid names it"
    remedy_ = cure or "name it: rayrl-debug snapshot --pid PID"
    return [Gap(id=gaps.DRIVER_UNKNOWN, where=name, what="the driver of the job", reason=reason, remedy=remedy_)]


def unread_groups(name: str, pids: Sequence[int]) -> list[Gap]:
    """Torch's process groups of processes whose ranks may be known by nothing else."""
    more = f" and {len(pids) - _MAX_NAMED} more" if len(pids) > _MAX_NAMED else ""
    what = f"torch's process groups of pid {', '.join(map(str, pids[:_MAX_NAMED]))}{more}"
    why = "no time was left: the machine is busy, or has many processes"
    return [Gap(id=gaps.RANK_UNKNOWN, where=name, what=what, reason=why)] if pids else []


def samples_left_out(name: str, taken: int, wanted: int, *, interrupted: bool) -> list[Gap]:
    """Samples for which no time was left, or that an interruption cost."""
    id_, why = (gaps.INTERRUPTED, "interrupted") if interrupted else (gaps.WINDOW_SHORT, "no time was left")
    return [Gap(id=id_, where=name, what=f"{wanted - taken} of {wanted} samples", reason=why)] if taken < wanted else []
