"""Worlds: sets of ranks that do collectives together, with who is there and who is missing.

A world comes from what its ranks say (``WORLD_SIZE``, ``RANK``, meeting point). Where ranks cannot be learned, live actors of one class and job
that run the same method form one; then its size is unknown and nobody can be called missing.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from ray_rl_debug.analyze.view import Seen, View
from ray_rl_debug.snapshot import RayActor


class World(msgspec.Struct, frozen=True, kw_only=True):
    """One world."""

    key: str
    name: str
    size: int | None
    members: tuple[Seen, ...]
    """Ranks that were collected, in order of rank."""
    missing: tuple[int, ...] = ()
    """Ranks that should be there and were not seen."""
    dead: tuple[RayActor, ...] = ()
    """Dead actors of the same class and job that can be the missing ranks."""
    source: str = "environment"


def find_worlds(view: View) -> tuple[World, ...]:
    """All worlds of a view, largest first."""
    ranked: dict[str, list[Seen]] = defaultdict(list)
    for one in view:
        if one.identity.world is not None:
            ranked[one.identity.world].append(one)
    worlds = [_ranked_world(view, key, members) for key, members in ranked.items()]
    worlds = _merge_late(worlds)
    worlds += _worlds_by_class(view, {m.key for w in worlds for m in w.members})
    return tuple(sorted(worlds, key=lambda w: (-len(w.members), w.key)))


def _ranked_world(view: View, key: str, members: list[Seen]) -> World:
    members = sorted(members, key=lambda s: (s.identity.rank or 0, s.key))
    sizes = [m.identity.world_size for m in members if m.identity.world_size]
    size = max(sizes) if sizes else None
    present = {m.identity.rank for m in members}
    missing = tuple(r for r in range(size or 0) if r not in present)
    first = members[0].identity
    return World(
        key=key,
        name=first.role or first.class_name or "world",
        size=size,
        members=tuple(members),
        missing=missing,
        dead=_dead_twins(view, members) if missing else (),
        source=first.rank_source or "environment",
    )


def _merge_late(worlds: list[World]) -> list[World]:
    """Ranks of one world that disagree only in what they know of the meeting point (some set it late) belong together."""
    merged: list[World] = []
    for world in worlds:
        job, role, _, size = world.key.split("|")
        twin = next(
            (
                i
                for i, w in enumerate(merged)
                if [w.key.split("|")[j] for j in (0, 1, 3)] == [job, role, size]
                and not {m.identity.rank for m in w.members} & {m.identity.rank for m in world.members}
                and (w.key.split("|")[2] == "" or world.key.split("|")[2] == "")
            ),
            None,
        )
        if twin is None:
            merged.append(world)
            continue
        old = merged[twin]
        members = tuple(sorted((*old.members, *world.members), key=lambda s: s.identity.rank or 0))
        present = {m.identity.rank for m in members}
        merged[twin] = msgspec.structs.replace(old, members=members, missing=tuple(r for r in range(old.size or 0) if r not in present))
    return merged


def _worlds_by_class(view: View, known: set[str]) -> list[World]:
    groups: dict[tuple[str, str], list[Seen]] = defaultdict(list)
    for one in view:
        if one.key in known or one.process.kind != "ray-worker" or not one.identity.class_name or one.identity.rank is not None:
            continue
        groups[(one.identity.job_id or "-", one.identity.class_name)].append(one)
    found = []
    for (job, class_name), members in sorted(groups.items()):
        if len(members) < 2 or not any(m.kind is not None and m.kind.name in _RANK_KINDS for m in members):
            continue
        found.append(
            World(
                key=f"{job}|{class_name}|class",
                name=class_name,
                size=None,
                members=tuple(sorted(members, key=lambda s: s.key)),
                dead=_dead_twins(view, members),
                source="actors of one class",
            )
        )
    return found


_RANK_KINDS = frozenset({"COLLECTIVE", "P2P", "RENDEZVOUS", "NEW_GROUP", "DESTROY"})


def _dead_twins(view: View, members: list[Seen]) -> tuple[RayActor, ...]:
    """Dead actors of the members' class and job that died by themselves (not because their handle went away)."""
    if view.ray is None:
        return ()
    classes = {(m.identity.job_id, m.actor.class_name) for m in members if m.actor is not None}
    return tuple(
        a for a in view.ray.actors if a.state in ("DEAD", "RESTARTING") and (a.job_id, a.class_name) in classes and a.death_kind != "out-of-scope"
    )
