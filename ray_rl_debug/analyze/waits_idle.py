"""Edges of ranks that nobody has called yet: while the others wait for such a rank in a collective, it waits for whoever calls all of them.

Ray counts the calls that each actor has begun. One that has had fewer than its fellows was not called; one with as many has returned too early.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.known_edges import all_waiters, edges_of
from ray_rl_debug.analyze.pauses import sleeps
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.model.report import Certainty


def idle_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """`known` are the edges found so far. Whoever waits for the rank itself, be it by way of others, comes to no further call."""
    fellows: dict[str, list[Seen]] = {}
    for edge in edges_of(known, Why.COLLECTIVE):
        one = view.seen.get(edge.target)
        if one is not None and one.is_idle and not one.is_stopped and edge.source in view.seen:
            fellows.setdefault(edge.target, []).append(view.seen[edge.source])
    owners = {t.task_id: other for other in view if other.core is not None for t in other.core.owned} if fellows else {}
    for key, waiting in fellows.items():
        one = view.seen[key]
        had_more = [_had_more_calls(w, one) for w in waiting]
        if False in had_more:
            continue
        running = {t for w in waiting for t in (w.core.running_task_ids if w.core is not None else ())}
        callers = {owners[t].key: owners[t] for t in running if t in owners}
        behind = all_waiters(key, known)
        is_read = view.once(_counts_were_read)
        if (None in had_more or not running <= owners.keys()) and (is_read or any(_may_call(other) for other in view if other.key not in behind)):
            yield to_unseen(one, f"the calls of {one.identity.label}", Why.INSIDE)
        for caller in callers.values():
            if caller.key not in behind and caller.key != key and not caller.is_stopped:
                evidence = f"it was called less often than those that wait for it; {caller.identity.label}, which calls them, {caller.does()}"
                yield Edge(source=key, target=caller.key, why=Why.INSIDE, evidence=evidence, certainty=Certainty.LIKELY)


def _counts_were_read(view: View) -> bool:
    return any(one.core is not None and one.core.executed_tasks is not None for one in view)


def _may_call(one: Seen) -> bool:
    """Is it a driver or an actor that goes on by itself, or may, and so may come to the call of the one that nobody has called?"""
    return one.process.kind in ("driver", "ray-worker") and not one.is_idle and (one.is_at_work or sleeps(one))


def _had_more_calls(fellow: Seen, one: Seen) -> bool | None:
    """Of actors of one class, begun calls included; None where Ray does not tell it of one of them."""
    if fellow.identity.class_name != one.identity.class_name or (one.core is not None and one.core.running_task_ids):
        return False
    begun, its = (s.core.executed_tasks if s.core is not None else None for s in (fellow, one))
    return begun > its if begun is not None and its is not None else None
