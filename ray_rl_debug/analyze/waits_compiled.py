"""Edges of Ray's compiled graphs: actors that run in loops of their own, and a driver, all joined by channels in shared memory.

Which channel a stack reads is not told. Whoever reads or writes one waits for any of the graph's others that is elsewhere and not idle: it may be
the one who writes or reads there. Where all are met at channels nobody is waited for: that is how a graph at work looks whose steps are short.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.library_places import COMPILED, of_compiled
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Certainty


def compiled_edges(view: View) -> Iterator[Edge]:
    """From those that stand at a channel in all samples to the others of their job's graphs."""
    if not any(stack.once(of_compiled) for stack in view.stacks):
        return
    members = [one for one in view if any(t.stack.once(of_compiled) for t in one.threads)]
    for one in members:
        if not _at_channel(one):
            continue
        for other in members:
            if other is not one and not _at_channel(other) and not other.is_idle and other.identity.job_id == one.identity.job_id:
                evidence = f"it is at {COMPILED}; {other.name} belongs to a graph too, and {other.does()}"
                yield Edge(source=one.key, target=other.key, why=Why.COMPILED, evidence=evidence, certainty=Certainty.LIKELY)


def _at_channel(one: Seen) -> bool:
    return bool(one.places) and all(p.kind is Kind.CHANNEL and p.op == COMPILED for p in one.places)
