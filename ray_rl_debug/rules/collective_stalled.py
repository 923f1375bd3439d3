"""RRD103 collective stalled

Story
    Every rank has joined the same collective and it does not end: a dropped link, a wrong interface, a sick device.
    No rank is to blame.

Evidence
    Equal own paths on all ranks, nobody missing, equal in all samples; TCP retransmissions where there are some.

Remedy
    Look at network and devices, not at code.

Not this when
    The callers differ although the collective is the same (a mismatch), a rank is missing, or the ranks move.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.assumed_worlds import COMMON_WAIT
from ray_rl_debug.analyze.by_hand import stands_for
from ray_rl_debug.analyze.ended import ended
from ray_rl_debug.analyze.gpu_waits import GPU_COLLECTIVE
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.rank_threads import may_cross
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.waits_flight import bare, name_group
from ray_rl_debug.analyze.waits_ranks import is_waiting, split_by_site
from ray_rl_debug.analyze.worlds import World
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Who
from ray_rl_debug.rules.at_gpu import REMEDY_GPU
from ray_rl_debug.rules.counter_evidence import even_evidence, flight_troubles, group_evidence, nodes_of, whos
from ray_rl_debug.rules.scene import Found, Scene, make_finding, proc_evidence, stack_evidence

ID = "RRD103"
NAME = "collective stalled"
CAUSE = Cause.COLLECTIVE_STALLED

_REMEDY = (
    "check links and devices: NCCL_DEBUG=INFO, NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME, firewall, Xid, ECC",
    "if it is the first collective of the run, try NCCL_P2P_DISABLE=1 and another interface",
)


def detect(scene: Scene) -> Iterator[Found]:
    """Complete worlds that stand still in one call."""
    yield from _by_dumps(scene)
    yield from _at_gpu(scene)
    for world in scene.worlds:
        members = world.members
        if (
            len(members) < (1 if world.is_assumed else 2)
            or world.missing
            or any(scene.graph.out(m.key) for m in members)
            or not all(is_waiting(m) and not m.is_at_work and len(m.places) > 1 for m in members)
        ):
            continue
        if any(m.kind is Kind.P2P for m in members) or len(split_by_site(members)) != 1:
            continue
        first = members[0]
        peers = [m.place.peer is None for m in members if m.place is not None]
        if len({m.place.peer for m in members if m.place is not None} - {None}) > 1:
            continue
        groups = [m.process.torch is None for m in members]
        # which rank one of them names, which groups it has, or that a second collective of it is of another one, was not read
        unread = any(any(told) and not all(told) for told in (peers, groups)) or any(map(may_cross, members))
        at_gpu = first.place is not None and first.place.op == GPU_COLLECTIVE
        retransmits = sum(s.retransmits or 0 for m in members for s in m.process.sockets or ())
        evidence = [stack_evidence(first), proc_evidence(first, _alike(members))]
        evidence += even_evidence(scene, [m.key for m in members])
        if retransmits:
            evidence.append(Evidence(kind="socket", where=world.name, text=f"{retransmits} TCP retransmissions on the ranks' connections"))
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.LIKELY if retransmits else Certainty.POSSIBLE if world.size is None or unread else Certainty.LIKELY,
            _said(world, first),
            who=[Who(label=f"network or device between the ranks of {world.name}")],
            evidence=evidence,
            remedy=(*_REMEDY, *REMEDY_GPU) if at_gpu else _REMEDY,
            phase=first.phase,
        )
        yield Found(finding=finding, explains=frozenset(m.key for m in members))


def _at_gpu(scene: Scene) -> Iterator[Found]:
    """Of files: the only process at work waits for its GPU. A kernel that does not end keeps it, or a collective that waits for other ranks."""
    busy = [s for s in scene.view if s.threads and not s.is_idle] if scene.view.by_hand else []
    one = busy[0] if len(busy) == 1 else None
    if one is None or one.kind is not Kind.CUDA or one.telling is None or stands_for(one.process) > 1:
        return
    if one.is_stopped or one.motion is Motion.MOVING or ended(one) is not None or scene.graph.into([one.key]) or scene.graph.out(one.key):
        return
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.POSSIBLE,
        f"{one.where()} {one.does()}: a kernel on its GPU does not end, or a collective in front of it waits for other ranks",
        who=[Who(label=f"the GPU of {one.identity.label}")],
        evidence=[stack_evidence(one), proc_evidence(one, scene.reason(one))],
        remedy=REMEDY_GPU,
        phase=one.phase,
    )
    yield Found(finding=finding, explains=frozenset([one.key]))


def _alike(members: Sequence[Seen]) -> str:
    if any(m.is_assumed for m in members):
        return f"all {len(members)} that were dumped stand at this line" if len(members) > 1 else "no other rank was dumped"
    return f"all {len(members)} ranks stand at this line in every sample"


def _said(world: World, first: Seen) -> str:
    op = first.place.op if first.place else "collective"
    count = sum(stands_for(m.process) for m in world.members)
    if count == 1:
        return f"{first.where()} {first.does()}; whether all ranks have joined it cannot be told from one stack"
    seen = f"{'both' if count == 2 else f'all {count}'} ranks of {world.name} " + ("that were dumped " if world.is_assumed else "")
    if op == COMMON_WAIT and first.place is not None and first.place.path:
        function, file, line = first.place.path[0]
        at = f"{function} ({file.rsplit('/', 1)[-1]}:{line})"
        return f"{seen}stand at one line, {at}: they wait there for each other, as for a value from the GPU; network or device stalls"
    end = "network or device stalls" + (", or a rank that was not dumped has not joined" if world.is_assumed else "")
    return f"{seen}wait in {op if op == GPU_COLLECTIVE else f'the same {op}'}: {end}"


def _by_dumps(scene: Scene) -> Iterator[Found]:
    """Flight Recorder: every member has enqueued the same collective; on some the GPU may not have begun it."""
    for world, group in flight_troubles(scene, ("network", "device")):
        at = f"{bare(group.op)} number {group.seq} of {name_group(group)}"
        said = f"all {len(group.members)} ranks have joined {at}, and it does not end: network or device stalls"
        if group.culprits:
            said = (
                f"all ranks have joined {at}, but the GPU of rank {', '.join(map(str, group.culprits[:6]))} has not begun it: its stream is blocked"
            )
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            world.certainty(group),
            said,
            who=whos(scene, world, group.culprits) or [Who(label=f"network or device between the ranks of {world.name}")],
            evidence=group_evidence(world, group),
            remedy=_REMEDY,
        )
        yield Found(finding=finding, explains=nodes_of(world, group.culprits or group.waiting))
