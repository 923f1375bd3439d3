"""Launchers that wait for those of the other nodes before they start a rank: torchrun's rendezvous."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.launchers import meets_nodes
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Certainty

OTHER_NODES = node_of(NodeKind.ABSENT, "launchers")
"""Those who have not come: of launchers nothing tells which rendezvous they mean."""
_NODES = re.compile(r"--nnodes[= ](?:\d+:)?(\d+)")


def launcher_edges(view: View) -> Iterator[Edge]:
    """From each launcher in a rendezvous to those who have not come."""
    meeting = [s for s in view.at(Kind.RENDEZVOUS) if s.telling is not None and s.telling.stack.once(meets_nodes) and s.motion is not Motion.MOVING]
    for one in meeting:
        wanted = _NODES.search(one.process.title)
        seen = f"{len(meeting)} in it {'was' if len(meeting) == 1 else 'were'} seen"
        evidence = f"{seen}, of {wanted[1]} nodes that it wants" if wanted else f"{seen}; how many nodes it wants is not known"
        yield Edge(source=one.key, target=OTHER_NODES, why=Why.COLLECTIVE, op="rendezvous", evidence=evidence, certainty=Certainty.LIKELY)
