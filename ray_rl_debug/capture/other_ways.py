"""What a node does not give through Ray, asked for in every other way there is: from here, by Slurm, and last by the reader."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from ray_rl_debug.capture.slurm_looks import SlurmLooks, is_host, slurm_name, step
from ray_rl_debug.cluster.local_looks import LocalLooks
from ray_rl_debug.model.snapshot import Node, RayNode

LATE_S = 3.0
"""With less time than this left nobody is asked."""


class OtherWays:
    """Each node is asked once."""

    def __init__(self, here: Collection[str], looks: LocalLooks, slurm: SlurmLooks | None) -> None:
        self._here = here
        self._looks = looks
        self._slurm = slurm
        self._asked: set[str] = set()

    def ask(self, nodes: Sequence[RayNode], until: float, *, agent_ips: Collection[str] = ()) -> None:
        """Begin to look at these nodes; whoever is looked at from here gets what fits into the time."""
        room = until - time.monotonic() - 1.0
        new = [n for n in nodes if n.node_id not in self._asked]
        if room < LATE_S or not new:
            return
        self._asked.update(n.node_id for n in new)
        self._looks.start([n for n in new if n.node_id in self._here], agent_ips=set(agent_ips), room_s=room)
        far = [n for n in new if n.node_id not in self._here and is_host(n)]
        if far and self._slurm is not None:
            self._slurm.start(far, until)

    def found(self) -> dict[str, Node]:
        """What has come so far, by node id."""
        return self._looks.found | (self._slurm.found if self._slurm is not None else {})

    def finish(self, until: float, needed: Collection[str]) -> dict[str, Node]:
        """What came by the time `until`; it is waited for the nodes `needed` only."""
        self._looks.finish(until, needed)
        if self._slurm is not None and any(n in self._asked and n not in self._here for n in needed):
            self._slurm.finish(until)
        return self.found()

    def how(self, node_id: str) -> str:
        return "its facts were read from here" if node_id in self._here else "its facts were read by a step of the Slurm job"

    def also_failed(self, node_id: str) -> str:
        """What became of the way by Slurm; empty when it was not tried."""
        why = self._slurm.failed.get(node_id) if self._slurm is not None else None
        return f"; {why}" if why else ""


def remedy(node: RayNode, name: str, job: str | None) -> str:
    """What the reader can type to see this node."""
    look = "rayrl-debug snapshot --here -o DIR"
    if job is not None and is_host(node):
        return f"{' '.join(step(job, [slurm_name(node)]))} {look}, then: rayrl-debug report all the files together"
    return f"on {name}: {look}, then: rayrl-debug report all the files together"
