"""Of how many ranks nobody knows where they stand: the odd one out is known only when these could not turn the majority."""

from __future__ import annotations

from collections.abc import Collection, Sequence

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
    groups = {one.group for one in ranks if one.group is not None}
    wanted = {rank for group in groups for rank in group.members}
    if not wanted:
        wanted = {rank for world in worlds for rank in range(world.size or 0)}
    members = [(w.ranks.get(m.key, m.identity.rank), m) for w in worlds for m in w.members]
    unread = _groups_unread([m for _, m in members if is_waiting(m)], keys)
    placed = {rank for rank, m in members if m.threads and m.motion is not Motion.UNKNOWN and m.key not in unread}
    return len(wanted - placed)


def _groups_unread(waiting: Sequence[Seen], placed_by_site: Collection[str]) -> set[str]:
    """Of the waiting ranks those whose group was not read, though the groups of their fellows were. Of some waits nobody can read the group."""
    fellows = [m for m in waiting if m.group is not None]
    if not fellows:
        return set()
    sites = {site_of(m) for m in fellows}
    has_torch = any(m.process.torch is not None for m in fellows)
    others = (m for m in waiting if m.group is None)
    return {m.key for m in others if (has_torch and m.process.torch is None) or m.key not in placed_by_site or site_of(m) in sites}
