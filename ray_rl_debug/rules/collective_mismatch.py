"""RRD102 collective mismatch

Story
    Ranks of one group wait in different collectives, or one left one out: a skipped micro-batch, an exception on
    one rank, a decision taken by each rank alone.

Evidence
    The own code that leads each rank to its collective, its Flight Recorder entries, or the lines in which NCCL or
    ProcessGroupWrapper logs each collective; the odd ones out.

Remedy
    Take the decision together, or run the collective on every path.

Not this when
    A rank of the world is in no collective at all: then it is the one to look at, however different the others'
    places are. One that rests in the function in which the others wait brings them their work. Only *possible* if
    each rank was sampled once, or if the stacks come from files that do not tell the groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.analyze.by_hand import stands_for
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.engine_places import runs_module_together
from ray_rl_debug.analyze.groups import GroupId
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.rank_threads import Site
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.torch_calls import ROOTED
from ray_rl_debug.analyze.waits_flight import name_group
from ray_rl_debug.analyze.waits_ranks import is_waiting, split_by_site
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Finding, Who
from ray_rl_debug.rules.counter_evidence import flight_troubles, group_evidence, nodes_of, whos
from ray_rl_debug.rules.different_callers import callers
from ray_rl_debug.rules.placed_ranks import is_minority
from ray_rl_debug.rules.scene import Found, Scene, make_finding, stack_evidence, waiter_evidence
from ray_rl_debug.rules.threads_in_group import found_in_threads
from ray_rl_debug.rules.watchdog_evidence import found_in_accounts

ID = "RRD102"
NAME = "collective mismatch"
RULE = modules[__name__]
CAUSE = Cause.COLLECTIVE_MISMATCH

_REMEDY_FIRST = "look for a decision that each rank makes on its own before the collective: a skipped micro-batch, an exception, a time-out, a cache"
_FEW = 64
"""Ranks among which the odd one is looked for by leaving each out in turn."""
_REMEDY_TOGETHER = "make the decision together (all_reduce the flag), or run the collective on every path"


def detect(scene: Scene) -> Iterator[Found]:
    """Worlds whose ranks all wait, in different calls; and ranks that returned without the collective the others wait in."""
    yield from _by_dumps(scene)
    yield from found_in_accounts(scene, RULE, ("type", "size"), (_REMEDY_FIRST, _REMEDY_TOGETHER))
    yield from found_in_threads(scene, RULE)
    yield from _not_run_everywhere(scene)
    rooted = list(_by_named_rank(scene))
    yield from rooted
    for root, members, edges in scene.cycles():
        if any(f.explains & set(root.nodes) for f in rooted):
            continue
        ranks = [m for m in members if is_waiting(m) and m.kind is not Kind.P2P]
        if len(ranks) == len(members) and len({m.group for m in ranks}) > 1 and all(m.group is not None for m in ranks):
            yield Found(finding=_crossed(scene, ranks, edges), explains=frozenset(root.nodes))
            continue
        sites = split_by_site(ranks)
        if len(sites) < 2 or any(e.why in (Why.P2P, Why.RECEIVERS) for e in edges):
            continue
        # in files nobody knows the groups, and a rank that was not dumped may be the one that all wait for
        is_whole = not any(w.is_assumed and set(root.nodes) & {m.key for m in w.members} for w in scene.worlds)
        is_sure = is_whole and not _only_possible(edges) and not _names_unread(ranks)
        yield Found(finding=_finding(scene, sites, is_sure=is_sure), explains=frozenset(root.nodes))
    yield from _of_some_ranks(scene)
    for root, one in scene.process_roots():
        waiters = scene.waiting_ranks(one)
        if waiters and one.is_idle and not one.is_stopped and one.threads and not _init(waiters):
            if scene.view.by_hand and _brings_work(one, waiters):
                continue
            yield Found(finding=_skipped(scene, one, waiters), explains=frozenset(root.nodes))


def _of_some_ranks(scene: Scene) -> Iterator[Found]:
    """Of files: some ranks of a world were dumped, and all of these wait, in different collectives. The others may be anywhere."""
    for world in scene.worlds if scene.view.by_hand else ():
        shown = [m for m in world.members if m.threads]
        sites = split_by_site(shown)
        if world.missing and len(sites) > 1 and all(is_waiting(m) and m.kind is not Kind.P2P for m in shown) and not _init(shown):
            yield Found(finding=_finding(scene, sites, is_sure=False), explains=frozenset(m.key for m in shown))


def _by_named_rank(scene: Scene) -> Iterator[Found]:
    """Ranks in one broadcast, reduce, gather or scatter that do not name the same rank; the fewer are named, in a tie all."""
    for world in scene.worlds:
        sites: dict[str, dict[int, list[Seen]]] = {}
        for one in world.members:
            if one.place is not None and one.place.op in ROOTED and one.place.peer is not None and is_waiting(one) and not one.is_at_work:
                sites.setdefault(one.place.op, {}).setdefault(one.place.peer, []).append(one)
        for op, named in sites.items():
            if len(named) < 2:
                continue
            least, *others = sorted(map(len, named.values()))
            # whom the others name was not read: then another side may be the smaller one
            unread = sum(one.place is not None and one.place.op == op for one in world.members) - sum(map(len, named.values()))
            stands = all(one.motion is Motion.FROZEN for ranks in named.values() for one in ranks)
            odd = [one for ranks in named.values() if len(ranks) == least for one in ranks]
            odd_keys = {one.key for one in odd}
            waiting = [one for one in world.members if is_waiting(one)]
            sides = " against ".join(f"rank {peer} ({', '.join(o.where() for o in ranks[:3])})" for peer, ranks in sorted(named.items()))
            finding = make_finding(
                ID,
                NAME,
                CAUSE,
                Certainty.POSSIBLE if not stands or (unread and least + unread >= others[0]) else Certainty.LIKELY,
                f"the ranks of one {op} do not name the same rank: {sides}",
                who=[one.who() for one in odd],
                evidence=[*(stack_evidence(one) for one in odd[:3]), *waiter_evidence([one for one in waiting if one.key not in odd_keys])],
                remedy=["give every rank the same source or destination: a value that each rank computes itself differs at the edges of groups"],
                phase=odd[0].phase,
            )
            yield Found(finding=finding, explains=frozenset(one.key for one in waiting))


def _names_unread(ranks: list[Seen]) -> bool:
    """Was the rank that a collective goes to or comes from read of some who wait in one, and not of others? Those may name another one."""
    peers = [one.place.peer for one in ranks if one.place is not None and one.place.op in ROOTED]
    return None in peers and any(peer is not None for peer in peers)


def _not_run_everywhere(scene: Scene) -> Iterator[Found]:
    """Of files: one rank alone was dumped, and it waits for the parameters of a module. Most such waits end when all ranks run the module.

    Data of one kind on some ranks (an image, a sound), experts that nobody was sent to, or sequences of different lengths: those ranks never come.
    """
    for world in scene.worlds if scene.view.by_hand else ():
        one = world.members[0]
        thread = one.telling
        if len(world.members) > 1 or not world.is_assumed or stands_for(one.process) > 1 or not is_waiting(one) or thread is None:
            continue
        if one.is_at_work or not thread.stack.once(runs_module_together):
            continue
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.POSSIBLE,
            f"{one.where()} {one.does()}: it waits for the parameters of a module that the other ranks hold; a rank that does not run this module "
            "never comes",
            who=[Who(label=f"a rank of {world.name} that does not run this module")],
            evidence=[stack_evidence(one)],
            remedy=[
                "see whether the ranks take different ways through the model: data of one kind on some of them, unused experts, other lengths",
                "run such modules on every rank with made-up data; for experts, name them as leaf modules; let generation end together (synced_gpus)",
            ],
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset([one.key]))


_DIFFER = {"type": "in the kind of collective", "size": "in the number of elements", "dtype": "in the data type"}


def _by_dumps(scene: Scene) -> Iterator[Found]:
    """Flight Recorder: one number of one group, not the same collective on all ranks. The smaller side is named, in a tie nobody."""
    for world, group in flight_troubles(scene, _DIFFER):
        named = ", ".join(world.label(r) for r in group.culprits[:4])
        sides = " against ".join(f"{what} (rank {', '.join(map(str, ranks[:6]))})" for what, ranks in group.votes[:3])
        who = f"{named} differ{'s' if len(group.culprits) == 1 else ''}" if named else "the ranks differ, and neither side is larger:"
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            world.certainty(group),
            f"{who} {_DIFFER[group.kind]} at number {group.seq} of {name_group(group)}: {sides or group.op}",
            who=whos(scene, world, group.culprits),
            evidence=group_evidence(world, group),
            remedy=[_REMEDY_FIRST, _REMEDY_TOGETHER],
        )
        differing = group.culprits or [r for _, side in group.votes for r in side] or group.waiting
        yield Found(finding=finding, explains=nodes_of(world, differing))


def _brings_work(one: Seen, waiters: list[Seen]) -> bool:
    """Does it rest in the function in which the others wait? With its next message it comes to them there: they are at rest too.

    Not with an event loop: what comes to that goes elsewhere.
    """
    if one.place is None or one.kind is Kind.LOOP_IDLE or not one.place.path:
        return False
    at = one.place.path[0][:2]
    return all(w.place is not None and any(frame[:2] == at for frame in w.place.path[:_AT_HAND]) for w in waiters)


_AT_HAND = 3
"""Own frames within which the function stands that hands out work by a collective; one further out runs what that work is."""


def _init(waiters: list[Seen]) -> bool:
    return any(w.kind in (Kind.RENDEZVOUS, Kind.NEW_GROUP) for w in waiters)


def _finding(scene: Scene, sites: dict[Site, list[Seen]], *, is_sure: bool) -> Finding:
    smallest = min(map(_count, sites.values()))
    groups = [m for m in sites.values() if _count(m) == smallest]
    tie = len(groups) > 1 or smallest * 2 == sum(map(_count, sites.values()))
    ranks = [one for members in sites.values() for one in members]
    odd = [one for group in groups for one in group]
    if tie:
        ahead = max(sites.values(), key=_progress)
        odd = list(ahead)
    named = {one.key for one in odd}
    rest = [one for one in ranks if one.key not in named]
    labels = ", ".join(o.identity.label for o in odd[:4])
    here, there = callers(odd[0], rest[0]) if rest else ("", "")
    elsewhere = [left for members in sites.values() if (left := [one for one in members if one.key not in named])]
    there = there if len(elsewhere) == 1 else ""
    others = ", ".join(_stand_there(left, is_all=len(elsewhere) == 1) for left in elsewhere) or "the other ranks are elsewhere"
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.POSSIBLE if (tie and len(sites) > 2) or not _stand(ranks) or not is_sure or not is_minority(scene, odd, rest) else Certainty.LIKELY,
        f"{labels} {odd[0].does() if len(odd) == 1 else odd[0].they()}{here}, {others}{there}: the ranks took different paths",
        who=[o.who() for o in odd],
        evidence=[*(stack_evidence(o) for o in odd[:3]), *waiter_evidence(rest)],
        remedy=[_REMEDY_FIRST, _REMEDY_TOGETHER],
        phase=odd[0].phase,
    )


def _stand_there(ranks: list[Seen], *, is_all: bool) -> str:
    """``rank/0 waits in broadcast``, ``the other ranks wait in broadcast``; of one place among several how many wait there."""
    if _count(ranks) == 1:
        return f"{ranks[0].identity.label} {ranks[0].does()}"
    return f"{'the other' if is_all else _count(ranks)} ranks {ranks[0].they()}"


def _count(ranks: list[Seen]) -> int:
    """How many ranks these stacks stand for: a file may say of a stack that others have the same."""
    return sum(stands_for(one.process) for one in ranks)


def _crossed(scene: Scene, ranks: list[Seen], edges: list[Edge]) -> Finding:
    """Ranks that wait for each other in different groups; those are named that differ from the others of their own group, else all."""
    odd = [one for one in ranks if _differs_in_group(scene, one)] or _at_one_line(ranks) or _without_whom(ranks, edges) or _fewest(ranks)
    named = {one.key for one in odd}
    rest = [one for one in ranks if one.key not in named]
    said = "; ".join(f"{one.identity.label} {one.at()} of {one.group.words}" for one in [*odd, *rest][:4] if one.group is not None)
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.LIKELY if is_minority(scene, odd, rest) else Certainty.POSSIBLE,
        f"ranks wait for each other in different groups: {said}",
        who=[one.who() for one in odd],
        evidence=[
            *(stack_evidence(one) for one in odd[:4]),
            *(Evidence(kind="collective", where=scene.who(e.source).label, text=e.evidence) for e in edges[:4]),
        ],
        remedy=["make the groups on every rank in the same order, and call their collectives in one order everywhere", _REMEDY_TOGETHER],
        phase=odd[0].phase,
    )


def _at_one_line(ranks: list[Seen]) -> list[Seen]:
    """Those that stand at one line in different groups, where the others stand elsewhere."""
    lines = split_by_site(ranks)
    found = [one for some in lines.values() if len({m.group for m in some}) > 1 for one in some]
    return found if len(found) < len(ranks) else []


def _without_whom(ranks: list[Seen], edges: list[Edge]) -> list[Seen]:
    """The only rank without which the others wait in no ring: they agree on one order, and it has another."""
    if len(ranks) > _FEW:
        return []
    found = [one for one in ranks if not _has_ring([(e.source, e.target) for e in edges if one.key not in (e.source, e.target)])]
    return found if len(found) == 1 else []


def _has_ring(arrows: list[tuple[str, str]]) -> bool:
    """Does some way lead back to its start? Those that wait for nobody are taken away until none is left, or a ring."""
    while arrows:
        sources = {source for source, _ in arrows}
        left = [(source, target) for source, target in arrows if target in sources]
        if len(left) == len(arrows):
            return True
        arrows = left
    return False


def _fewest(ranks: list[Seen]) -> list[Seen]:
    """The ranks of the group in which the fewest of them wait; in a tie all."""
    by_group: dict[GroupId | None, list[Seen]] = {}
    for one in ranks:
        by_group.setdefault(one.group, []).append(one)
    least = min(map(len, by_group.values()))
    few = [some for some in by_group.values() if len(some) == least]
    return few[0] if len(few) == 1 else ranks


def _differs_in_group(scene: Scene, one: Seen) -> bool:
    """Is it in the minority among those that wait in the same group?"""
    joined = [m for w in scene.worlds for m in w.members if m.group == one.group and is_waiting(m) and any(x.key == one.key for x in w.members)]
    alike = split_by_site(joined)
    mine = next((len(ranks) for ranks in alike.values() if any(m.key == one.key for m in ranks)), 0)
    return 2 * mine < len(joined)


def _stand(ranks: list[Seen]) -> bool:
    """Was one seen to wait for longer than a moment? Samples of different moments differ although all goes on."""
    return any(one.motion is not Motion.UNKNOWN for one in ranks)


def _only_possible(edges: list[Edge]) -> bool:
    return all(e.certainty is Certainty.POSSIBLE for e in edges)


def _progress(members: list[Seen]) -> tuple[int, ...]:
    """How far ahead a site is: lines along the outermost own frames."""
    place = members[0].place
    return tuple(line or 0 for _, _, line in reversed(place.path)) if place else ()


def _skipped(scene: Scene, one: Seen, waiters: list[Seen]) -> Finding:
    ranks = {w.key for w in waiters}
    edges = [e for e in scene.graph.into([one.key]) if e.source in ranks]
    # in files an idle process may belong to another group, or to none
    is_doubtful = scene.view.by_hand or _only_possible(edges) or not _stand(waiters)
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.POSSIBLE if is_doubtful else Certainty.LIKELY,
        f"{one.where()} is idle while the other ranks wait for it in {waiters[0].inside()}: it skipped a collective, or nobody called it",
        who=[one.who()],
        evidence=[stack_evidence(one), *waiter_evidence(waiters)],
        remedy=["look in this rank's log for an early return or a swallowed exception", "run the collective on every path of the method"],
        phase=waiters[0].phase,
    )
