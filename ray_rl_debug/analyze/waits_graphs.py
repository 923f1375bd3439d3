"""Edges of Ray's compiled graphs: whoever waits at a channel waits for those of the graph, actors and caller, that are elsewhere and not idle.

Which channel a stack reads, and which process belongs to which graph, is not told: any of those of the job may be the one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.frameworks.compiled_graphs import CHANNELS, is_of_graph
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Frame


def graph_edges(view: View) -> Iterator[Edge]:
    """From each process at a channel to those of its job's graphs that do something else."""
    if not any(stack.once(is_of_graph) for stack in view.stacks):
        return
    members = [one for one in view if any(thread.stack.once(is_of_graph) for thread in one.threads)]
    waiting = [one for one in members if _waits_at_channel(one)]
    here = {one.key for one in waiting}
    for one in waiting:
        for other in members:
            if other.key not in here and not other.is_idle and one.identity.job_id == other.identity.job_id:
                evidence = f"it waits at a channel of a compiled graph; {other.identity.label} {other.at()}"
                yield Edge(source=one.key, target=other.key, why=Why.MESSAGE, op="channel", evidence=evidence, certainty=Certainty.LIKELY)


def _waits_at_channel(one: Seen) -> bool:
    """An actor that has nothing to do may be seen by its main thread, though another one reads."""
    at_it = [thread for thread in one.threads if thread.stack.once(_at_channel)]
    return bool(at_it) and (one.is_idle or one.telling in at_it)


def _at_channel(frames: tuple[Frame, ...]) -> bool:
    return any(f.file.startswith(CHANNELS) for f in frames)
