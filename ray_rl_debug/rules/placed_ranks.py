"""Of how many ranks nobody knows where they stand: the odd one out is known only when these could not turn the majority."""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.waits_ranks import is_waiting, site_of
from ray_rl_debug.rules.scene import Scene


def is_minority(scene: Scene, few: Sequence[Seen], many: Sequence[Seen]) -> bool:
    """Would `few` still be fewer than `many`, or as few, if every rank that was not placed stood with them?"""
    unplaced = count_unplaced(scene, [*few, *many])
    return not unplaced or len(few) + unplaced < len(many)


def count_unplaced(scene: Scene, ranks: Sequence[Seen]) -> int:
    """Members of the groups of these ranks, or of their world, that were not seen or stand in a group that was not read."""
    keys = {one.key for one in ranks}
    worlds = [w for w in scene.worlds if any(m.key in keys for m in w.members)]
    grouped = any(one.group is not None for one in ranks)
    wanted = {rank for one in ranks if one.group is not None for rank in one.group.members}
    if not grouped:
        wanted = {rank for world in worlds for rank in range(world.size or 0)}
    members = [(w.ranks.get(m.key, m.identity.rank), m) for w in worlds for m in w.members]
    waiting = [m for _, m in members if is_waiting(m)]
    placed = {rank for rank, m in members if m.threads and m.motion is not Motion.UNKNOWN and not _is_group_unread(m, waiting, m.key in keys)}
    return len(wanted - placed)


def _is_group_unread(one: Seen, waiting: Sequence[Seen], placed_by_site: bool) -> bool:
    """Does it wait in a group that was not read, though the groups of its fellows were? Of some waits nobody can read the group."""
    if one.group is not None or not is_waiting(one):
        return False
    fellows = [m for m in waiting if m.group is not None]
    if one.process.torch is None and any(m.process.torch is not None for m in fellows):
        return True
    return bool(fellows) and (not placed_by_site or any(site_of(m) == site_of(one) for m in fellows))
