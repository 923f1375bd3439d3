"""Edges of processes that wait in C at memory which processes share: at a barrier, a condition or a counter of the C library or of the program."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.looks import shared_with
from ray_rl_debug.analyze.lost_ends import sees_all_below
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import has_orphans, to_unseen
from ray_rl_debug.model.report import Certainty

_AMONG = "sharers of its memory"
_MOST = 16
"""Of more processes that share memory nobody knows which one it is."""


def shared_memory_edges(view: View) -> Iterator[Edge]:
    """To any of those who may share the memory and do not wait there themselves: its family, and who has a segment that it has.

    Who waits at a semaphore of multiprocessing is left out where its holders are known.
    """
    for one in view.at(Kind.LOCK):
        thread = one.followed or one.telling
        kernel = thread.kernel if thread is not None else None
        if kernel is None or kernel_call(kernel) != "futex" or kernel.in_shared is False or one.has_ended:
            continue
        if any((one.process.pid, kernel.tid) in s.waiters for s in one.node.semaphores):
            continue
        if kernel.in_shared is None:
            if view.once(_was_read):
                yield to_unseen(one, f"the memory at which pid {one.process.pid} waits", Why.MESSAGE)
            continue
        others = [o for o in _sharers(view, one) if not _waits_there(o)]
        if len(others) > _MOST or not others:
            yield to_unseen(one, f"the memory at which pid {one.process.pid} waits", Why.MESSAGE)
            continue
        if _may_lack_sharer(view, one):
            yield msgspec.structs.replace(to_unseen(one, f"the memory at which pid {one.process.pid} waits", Why.MESSAGE), among=_AMONG)
        for other in others:
            evidence = f"it waits at memory that processes share; pid {other.process.pid} {other.does()}"
            yield Edge(source=one.key, target=other.key, why=Why.MESSAGE, evidence=evidence, certainty=Certainty.LIKELY, among=_AMONG)


def _may_lack_sharer(view: View, one: Seen) -> bool:
    """May one of its family be missing?"""
    parent = view.by_node_pid.get((one.node.name, one.process.ppid or 0))
    known = view.once(_whole_families)
    if parent is not None and parent not in known:
        known[parent] = sees_all_below(view, view.seen[parent])
    return parent is None or not known[parent] or has_orphans(view, one)


def _whole_families(_: View) -> dict[str, bool]:
    """By the key of a parent, filled as it is asked for: its children ask the same."""
    return {}


def _was_read(view: View) -> bool:
    return any(t.in_shared is not None for one in view for t in one.process.threads)


def _sharers(view: View, one: Seen) -> list[Seen]:
    """Parent, siblings and children, who share what was made before they began, and those with a segment by name."""
    parent = view.by_node_pid.get((one.node.name, one.process.ppid)) if one.process.ppid is not None else None
    keys = dict.fromkeys([*([parent] if parent is not None else []), *view.below.get((one.node.name, one.process.ppid or 0), ())])
    family = [view.seen[key] for key in keys] + [*view.children(one)]
    found = {o.key: o for o in (*family, *shared_with(view, one)) if o.key != one.process_key and not o.has_ended}
    return list(found.values())


def _waits_there(other: Seen) -> bool:
    thread = other.followed or other.telling
    return other.kind is Kind.LOCK and thread is not None and thread.kernel is not None and thread.kernel.in_shared is True
