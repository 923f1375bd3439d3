"""Edges of Ray's compiled graphs: whoever waits at a channel waits for those actors of the graph that are not at one.

Which actors belong to which graph is not known, so any of those of the job may be the one. An actor that reads its next piece of work keeps nobody.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.frameworks.compiled_graphs import CHANNELS, runs_graph
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Frame


def graph_edges(view: View) -> Iterator[Edge]:
    """From each process at a channel to the actors of its job that are in a method of theirs."""
    waiting = [one for one in view.at(Kind.CHANNEL) if one.telling is not None and one.telling.stack.once(_at_channel)]
    inside = [one for one in view if one.telling is not None and one.telling.stack.once(runs_graph) and not one.is_idle] if waiting else []
    here = {one.key for one in waiting}
    for one in waiting:
        for other in inside:
            if other.key not in here and one.identity.job_id == other.identity.job_id:
                evidence = f"it waits at a channel of a compiled graph; {other.identity.label} {other.at()}"
                yield Edge(source=one.key, target=other.key, why=Why.MESSAGE, op="channel", evidence=evidence, certainty=Certainty.LIKELY)


def _at_channel(frames: tuple[Frame, ...]) -> bool:
    return any(f.file.startswith(CHANNELS) for f in frames)
