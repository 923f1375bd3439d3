"""Edges at message queues and semaphores of System V: they have numbers, and the kernel does not tell who knows one.

Who used one last is told, and who waits there. Of all others of the job any may send or give back what is waited for, unless it waits itself for
those who wait there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RANKS
from ray_rl_debug.analyze.lost_ends import MAY_HOLD, lacks_child
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import SystemV

_CALLS = {"msgrcv": "message", "msgsnd": "message", "semop": "semaphore", "semtimedop": "semaphore"}
_NAMES = {"message": "message queue of System V", "semaphore": "semaphore of System V"}


def system_v_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """From whoever waits at one to all that may end its wait: any of them is enough."""
    waits: dict[str, set[str]] = defaultdict(set)
    at: dict[tuple[str, str, int | None], list[Seen]] = defaultdict(list)
    for one in view.like(lambda shape: shape.kind not in WAITS_FOR_RANKS):
        thread = one.followed or one.telling
        kind = _kind(thread)
        if thread is not None and kind is not None:
            number = thread.kernel.syscall_arg0 if thread.kernel is not None else None
            at[(one.node.name, kind, number)].append(one)
    if not at:
        return
    for edge in known:
        waits[edge.source].add(edge.target)
    for (_, kind, number), there in at.items():
        told = next((v for v in there[0].node.system_v if (v.kind, v.number) == (kind, number)), None)
        behind = _behind({one.key for one in there}, waits)
        for one in there:
            yield from _edges(view, one, _NAMES[kind], told, behind, {o.process.pid for o in there})


def _kind(thread: SeenThread | None) -> str | None:
    kernel = thread.kernel if thread is not None else None
    return _CALLS.get(kernel.call or "") if kernel is not None and kernel.state == "S" else None


def _edges(view: View, one: Seen, what: str, told: SystemV | None, behind: set[str], there: set[int]) -> Iterator[Edge]:
    others = [o for o in view if o.node is one.node and o.process is not one.process and o.process.kind in MAY_HOLD]
    unread = any(not o.threads and not o.has_ended for o in others) or any(lacks_child(view, o) for o in (one, *others))
    seen = {o.process.pid for o in (one, *others)}
    if told is None or not told.is_private or unread or not seen.issuperset(set(told.users) - set(told.ended)):
        unseen = to_unseen(one, f"the {what} at which pid {one.process.pid} waits", Why.GIVERS)
        yield msgspec.structs.replace(unseen, op=what)
    if told is None:
        return
    users = {*there, *told.users}
    lost = f"; pid {told.ended[0]}, which changed it last, has ended" if told.ended and told.kind == "semaphore" else ""
    for other in others:
        is_user = other.process.pid in users
        if other.has_ended or (not is_user and other.key in behind):
            continue  # who has ended gives nothing back; who waits for those at it comes to nothing before them
        used = "has used it too" if is_user else "may know its number"
        evidence = f"waits at the {what} {told.number}; {other.identity.label} {used}: it {other.does()}{lost}"
        sure = Certainty.LIKELY if is_user else Certainty.POSSIBLE
        yield Edge(source=one.key, target=other.key, why=Why.GIVERS, op=what, evidence=evidence, certainty=sure)


def _behind(there: set[str], waits: dict[str, set[str]]) -> set[str]:
    """Whoever waits for nobody but those, directly or by way of others."""
    found = set(there)
    while more := {key for key, targets in waits.items() if key not in found and targets <= found}:
        found |= more
    return found
