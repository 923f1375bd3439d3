"""Edges to threads that may serve others: who waits for an answer of a process waits for any of its threads that may give it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ray_rl_debug.analyze.connections import is_served
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kernel_calls import descriptor, kernel_call
from ray_rl_debug.analyze.kinds_of_places import THREAD_WAITS, Kind
from ray_rl_debug.analyze.nodes import NodeKind, kind_of
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.unread_coroutines import is_blind_beside
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waiting import ANY
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.model.report import Certainty

_ANSWERS = frozenset({Why.SOCKET, Why.AWAITED_SOCKET, Why.PIPE, Why.CHILD_QUEUE, Why.MESSAGE, Why.P2P, Why.RECEIVERS})
"""Waits for what one thread of a process gives, whichever it is."""


def through_threads(view: View, edges: Iterable[Edge]) -> Iterator[Edge]:
    """The edges, those for an answer as alternatives between the main thread of a process and those that may serve."""
    for edge in edges:
        if edge.why not in _ANSWERS:
            yield edge
            continue
        serving = [t for t in view.serving(edge.target) if not _serves_nobody_now(t)]
        unread = _unread_part(view, view.seen[edge.target]) if edge.target in view.seen else None
        if not serving and unread is None:
            yield edge
            continue
        among = edge.among or ("" if edge.why in ANY else f"threads of {edge.target}")
        if unread is not None:
            unseen = to_unseen(view.seen[edge.source], unread, edge.why)
            yield msgspec.structs.replace(unseen, op=edge.op, among=among)
        yield msgspec.structs.replace(edge, among=among)
        for thread in serving:
            evidence = f"{edge.evidence}; its thread {_called(thread)} may answer: it {thread.does()}"
            yield msgspec.structs.replace(edge, target=thread.key, among=among, evidence=evidence)


def without_unasked(edges: Iterable[Edge]) -> Iterator[Edge]:
    """The edges, without those of threads from which nobody waits for an answer: what such a thread waits for is its own affair."""
    kept = tuple(edges)
    asked = {edge.target for edge in kept}
    return (edge for edge in kept if edge.source in asked or kind_of(edge.source) is not NodeKind.THREAD)


def _unread_part(view: View, one: Seen) -> str | None:
    """Of a process that itself waits for others: what was not read of it, and may answer."""
    if bool(one.process.python) and not one.threads and bool(one.process.object_refs) and view.has_stacks:
        return f"what the threads of pid {one.process.pid} do"
    if one.left:
        return f"what thread {one.left[0].called} of pid {one.process.pid} did last"
    return f"what the coroutines of pid {one.process.pid} do" if one.lane_of is None and is_blind_beside(one) else None


def inside_edges(view: View) -> Iterator[Edge]:
    """From threads that wait within their process: to its main thread, which may end that."""
    for one in view.like_parts(lambda shape: shape.part is NodeKind.THREAD and shape.kind in THREAD_WAITS):
        process = view.seen[one.process_key]
        evidence = f"its thread {_called(one)} {one.at()}, and its main thread {process.at()}"
        yield Edge(source=one.key, target=process.key, why=Why.INSIDE, evidence=evidence, certainty=Certainty.LIKELY)


def _serves_nobody_now(thread: Seen) -> bool:
    """Does it read the next request at a connection that it serves?"""
    kernel = thread.telling.kernel if thread.telling is not None else None
    fd = descriptor(kernel) if thread.kind is Kind.SOCKET and kernel_call(kernel) in ("recv", "read") else None
    return fd is not None and any(s.fd == fd and is_served(thread, s) for s in thread.process.sockets or ())


def _called(one: Seen) -> str:
    return one.telling.called if one.telling is not None else ""
