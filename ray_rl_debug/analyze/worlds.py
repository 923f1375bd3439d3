"""Worlds: sets of ranks that do collectives together, with who is there and who is missing.

A world comes from what its ranks say (``WORLD_SIZE``, ``RANK``, meeting point). Where ranks cannot be learned, live actors of one class and job
that run the same method form one; then its size is unknown and nobody can be called missing. Such actors are the missing ranks of another world
when they hold TCP connections to its ranks.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.by_hand import ranks_told
from ray_rl_debug.analyze.connections import connected_peers
from ray_rl_debug.analyze.group_threads import is_in_group
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_sizes import claim_of
from ray_rl_debug.model.snapshot import Process, RayActor


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
    is_assumed: bool = False
    """Its members are those whose stacks somebody gave; there may be more."""
    ranks: Mapping[str, int] = {}
    """Rank by process key, also where only actor names (``trainer_3``) tell it."""

    @property
    def may_lack_ranks(self) -> bool:
        """Are there ranks that were not seen, or may there be?"""
        return bool(self.missing) or self.size is None


def find_worlds(view: View) -> tuple[World, ...]:
    """All worlds of a view, largest first."""
    ranked: dict[str, list[Seen]] = defaultdict(list)
    for one in view:
        if one.identity.world is not None:
            ranked[one.identity.world].append(one)
    worlds = [_ranked_world(view, key, members) for key, members in ranked.items()]
    worlds = _merge_fragments(_merge_late(worlds))
    worlds = _merge_lonely(_merge_resting(worlds)) if view.by_hand else worlds
    worlds = _join_connected(view, worlds, _worlds_by_class(view, {m.key for w in worlds for m in w.members}))
    worlds += _worlds_by_parent(view, {m.key for w in worlds for m in w.members})
    worlds = _with_lost(view, _by_program(view, worlds)) if view.by_hand else worlds
    worlds = [msgspec.structs.replace(w, ranks=_ranks_of(w)) for w in worlds]
    return tuple(sorted(worlds, key=lambda w: (-len(w.members), w.key)))


def _ranked_world(view: View, key: str, members: list[Seen]) -> World:
    members = sorted(members, key=lambda s: (s.identity.rank or 0, s.key))
    sizes = [m.identity.world_size for m in members if m.identity.world_size]
    size = max(sizes) if sizes else _size_told(members)
    present = {m.identity.rank for m in members} | {r for m in members for r in ranks_told(m.process)}
    is_assumed = view.by_hand and size is None
    missing = _holes(present, len(members)) if is_assumed else tuple(r for r in range(size or 0) if r not in present)
    first = members[0].identity
    return World(
        key=key,
        name=first.role or first.class_name or "world",
        size=size,
        members=tuple(members),
        missing=missing,
        dead=dead_twins(view, members) if missing else (),
        source=first.rank_source or "environment",
        is_assumed=is_assumed,
    )


def _size_told(members: Sequence[Seen]) -> int | None:
    """Where the environment tells no size: what all ranks say that stand in the rendezvous of their world, each under the rank that it has."""
    claims = [claim for m in members if m.kind is Kind.RENDEZVOUS and (claim := claim_of(m)) is not None and claim.rank == m.identity.rank]
    sizes = {claim.size for claim in claims}
    return sizes.pop() if len(sizes) == 1 and len(claims) == len(members) else None


def _holes(present: Collection[int | None], count: int) -> tuple[int, ...]:
    """Ranks left out by somebody who dumped most of them: not dumped, or nothing could be."""
    known = [r for r in present if r is not None]
    last = max(known, default=0)
    return tuple(r for r in range(last) if r not in known) if last < 2 * count else ()


def _merge_late(worlds: list[World]) -> list[World]:
    """Ranks of one world that disagree only in what they know of the meeting point (some set it late), or in their class, belong together."""
    merged: list[World] = []
    for world in worlds:
        twin = next((i for i, w in enumerate(merged) if _is_same(w, world)), None)
        if twin is None:
            merged.append(world)
            continue
        merged[twin] = _with_members(merged[twin], world.members)
    return merged


def _merge_fragments(worlds: list[World]) -> list[World]:
    """Ranks of one class and size that name different ports to meet at and complete each other exactly belong together: some were set up anew."""
    alike: dict[tuple[str, str, str], list[World]] = defaultdict(list)
    for world in worlds:
        job, role, meeting, size = world.key.split("|")
        if world.missing and ":" in meeting:
            alike[(job, role, size)].append(world)
    for fragments in alike.values():
        ranks = sorted(m.identity.rank or 0 for w in fragments for m in w.members)
        if len(fragments) > 1 and ranks == list(range(fragments[0].size or 0)):
            whole = _with_members(fragments[0], [m for w in fragments[1:] for m in w.members])
            worlds = [*(w for w in worlds if all(w is not f for f in fragments)), whole]
    return worlds


def _merge_lonely(worlds: list[World]) -> list[World]:
    """Files do not tell which parts of engines belong together: groups of one process each, of one role, are taken for one world."""
    alone: dict[str, list[World]] = defaultdict(list)
    for world in worlds:
        if world.is_assumed and len(world.members) == 1:
            alone[world.name].append(world)
    for fragments in (some for some in alone.values() if len(some) > 1):
        members = tuple(m for w in fragments for m in w.members)
        whole = msgspec.structs.replace(fragments[0], members=members, missing=())
        worlds = [*(w for w in worlds if all(w is not f for f in fragments)), whole]
    return worlds


def _merge_resting(worlds: list[World]) -> list[World]:
    """In files, an actor that rests runs no method that tells its role: it belongs to the only world of its class that lacks its rank."""
    for resting in [w for w in worlds if w.is_assumed and all(m.is_idle and m.identity.class_name for m in w.members)]:
        ranks = {m.identity.rank for m in resting.members}
        class_name = resting.members[0].identity.class_name
        fits = [
            w
            for w in worlds
            if w is not resting
            and w.is_assumed
            and any(not m.is_idle for m in w.members)
            and all(m.identity.class_name == class_name for m in w.members)
            and not ranks & {m.identity.rank for m in w.members}
        ]
        if len(fits) == 1:
            worlds = [_with_members(w, resting.members) if w is fits[0] else w for w in worlds if w is not resting]
    return worlds


def _is_same(one: World, other: World) -> bool:
    job, role, meeting, size = one.key.split("|")
    other_job, other_role, other_meeting, other_size = other.key.split("|")
    # a worker that Ray started ahead of any job does not know its job; without Ray's tables nobody does
    is_same_job = job == other_job or "-" in (job, other_job)
    if size != other_size or not is_same_job or {m.identity.rank for m in one.members} & {m.identity.rank for m in other.members}:
        return False
    if meeting and meeting == other_meeting:
        return True
    return role == other_role and not (meeting and other_meeting)


def _with_members(world: World, more: Sequence[Seen]) -> World:
    members = tuple(sorted((*world.members, *more), key=lambda s: (s.identity.rank is None, s.identity.rank or 0, s.key)))
    unknown = sum(m.identity.rank is None for m in members)
    present = {m.identity.rank for m in members}
    missing = tuple(r for r in range(world.size or 0) if r not in present)
    return msgspec.structs.replace(world, members=members, missing=missing if len(missing) > unknown else ())


def _join_connected(view: View, ranked: list[World], unranked: list[World]) -> list[World]:
    """Give worlds with missing ranks the unranked actors that are connected to them, where no more come than are missing."""
    left = list(unranked)
    for i, world in enumerate(ranked):
        for group in list(left):
            if not world.missing or len(group.members) > len(world.missing) or group.key.split("|")[0] != world.key.split("|")[0]:
                continue
            present = {m.key for m in world.members}
            if all(connected_peers(view, member) & present for member in group.members):
                world = ranked[i] = _with_members(world, group.members)
                left.remove(group)
    return ranked + left


def _ranks_of(world: World) -> dict[str, int]:
    """What is known, and for the rest the number at the end of the actor's name, where these numbers fill the gaps."""
    known = {m.key: m.identity.rank for m in world.members if m.identity.rank is not None}
    named = {m.key: _NUMBER.search(m.identity.actor or "") for m in world.members if m.key not in known}
    numbers = {key: int(found[1]) for key, found in named.items() if found is not None}
    free = set(range(world.size or len(world.members))) - set(known.values())
    if len(numbers) == len(named) and len(set(numbers.values())) == len(numbers) and set(numbers.values()) <= free:
        return known | numbers
    return known


def _worlds_by_class(view: View, known: set[str]) -> list[World]:
    groups: dict[tuple[str, str], list[Seen]] = defaultdict(list)
    for one in view.like(lambda shape: shape.process == "ray-worker" and not shape.is_ranked):
        if one.key in known or not one.identity.class_name:
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
                dead=dead_twins(view, members),
                source="actors of one class",
                is_assumed=view.by_hand and view.ray is None,
            )
        )
    return found


def _worlds_by_parent(view: View, known: set[str]) -> list[World]:
    """Processes that one parent started and that are members of a process group (``torch.multiprocessing.spawn``, ranks as arguments)."""
    groups: dict[tuple[str, int], list[Seen]] = defaultdict(list)
    for one in view.like(lambda shape: shape.process in ("child", "named")):
        if one.key not in known and one.process.ppid is not None and is_in_group(one.process):
            groups[(one.node.name, one.process.ppid)].append(one)
    found = []
    for (node, parent), members in sorted(groups.items()):
        if len(members) > 1 and any(m.kind is not None and m.kind.name in _RANK_KINDS for m in members):
            key = f"{members[0].identity.job_id or '-'}|{node}/{parent}|parent"
            ordered = tuple(sorted(members, key=lambda s: s.key))
            found.append(World(key=key, name=f"the ranks of pid {parent}", size=None, members=ordered, source="children of one process"))
    return found


def _by_program(view: View, worlds: list[World]) -> list[World]:
    """With the worlds of programs in files: processes of one program, where at least one of them waits for other ranks.

    Where files tell the ranks of some of them, the others are ranks of the same world.
    """
    known = {m.key: w for w in worlds for m in w.members}
    for program in view.programs:
        members = tuple(view.seen[key] for key in program.keys)
        held = {w.key: w for m in members if (w := known.get(m.key)) is not None and w.is_assumed}
        free = [m for m in members if m.key not in known]
        if not free or not any(m.kind is not None and m.kind.name in _RANK_KINDS for m in members):
            continue
        if len(held) == 1:
            old = next(iter(held.values()))
            worlds = [*(w for w in worlds if w is not old), _with_members(old, free)]
        else:
            key = f"-|{program.name}|{members[0].key}|assumed"
            worlds = [
                *worlds,
                World(key=key, name=program.name, size=None, members=tuple(free), source="files of one program", is_assumed=True),
            ]
    return worlds


def _with_lost(view: View, worlds: list[World]) -> list[World]:
    """Processes whose stack could not be read belong to the largest world: somebody tried to dump them beside it."""
    known = {m.key for w in worlds for m in w.members}
    lost = [s for s in view if s.key not in known and not s.threads and s.identity.world is None and _is_told_of(s.process)]
    largest = max((w for w in worlds if w.is_assumed), key=lambda w: len(w.members), default=None)
    if not lost or largest is None:
        return worlds
    return [*(w for w in worlds if w is not largest), msgspec.structs.replace(largest, members=(*largest.members, *lost))]


def _is_told_of(process: Process) -> bool:
    return process.state in ("D", "Z") or any(r.kind in ("unread", "failed") for r in process.remarks)


_NUMBER = re.compile(r"[_\-:/](\d{1,6})$")

_RANK_KINDS = frozenset({"COLLECTIVE", "P2P", "RENDEZVOUS", "NEW_GROUP", "DESTROY"})


def dead_twins(view: View, members: Sequence[Seen]) -> tuple[RayActor, ...]:
    """Dead actors of the members' class and job that died by themselves (not because their handle went away)."""
    if view.ray is None:
        return ()
    classes = {(m.identity.job_id, m.actor.class_name) for m in members if m.actor is not None}
    return tuple(
        a for a in view.ray.actors if a.state in ("DEAD", "RESTARTING") and (a.job_id, a.class_name) in classes and a.death_kind != "out-of-scope"
    )
