"""The companion's hands on the nodes: what the loop needs of them, and how our warm Ray agents do it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

import msgspec

from ray_rl_debug.capture.cluster import ClusterOptions
from ray_rl_debug.capture.warm_agents import Agents
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.model.errors import RayRlDebugError
from ray_rl_debug.model.snapshot import Snapshot
from ray_rl_debug.watch.node_watch import EndOrder, WatchOrder
from ray_rl_debug.watch.signals import NodeReading

END = "ray_rl_debug.watch.node_watch:end_process"
LOOK = "ray_rl_debug.watch.node_watch:look"
NO_DRIVER = "the driver was not ended: another process has its number now, or no agent of ours is on its node"
ANSWER_S = 2.0
SILENT_TIMES = 3
"""Readings that a node may miss before it counts as silent: it is busy."""


class Crew(Protocol):
    """Somebody on every node."""

    def refresh(self) -> dict[str, str]:
        """Place somebody where nobody is; names of the nodes where that failed, and why."""

    def read(self, order: WatchOrder) -> tuple[dict[str, NodeReading], dict[str, str]]:
        """The signs by node, and the nodes that gave none, and why."""

    def gather(self, job_id: str | None) -> Snapshot:
        """A full snapshot of a job. Raises as `capture.cluster.take_snapshot`."""

    def end_process(self, node_id: str, pid: int, start_ticks: int) -> str | None:
        """Ask a driver to end (SIGTERM); what came of it, None when it was asked."""

    def stop(self) -> None:
        """Leave the nodes."""


class AgentCrew:
    """Warm Ray actors."""

    def __init__(self, options: ClusterOptions, keeper: str, progress: Callable[[str], None] = lambda _: None) -> None:
        self._agents = Agents(options, keeper=keeper, progress=progress)
        self._told: set[str] = set()
        self._missed: dict[str, int] = {}

    def refresh(self, only: Collection[str] | None = None) -> dict[str, str]:
        """With `only`: on these nodes, by id, and on no others."""
        return self._agents.start(only=only)

    def read(self, order: WatchOrder) -> tuple[dict[str, NodeReading], dict[str, str]]:
        order = msgspec.structs.replace(order, everything=order.everything or set(self._agents.nodes) != self._told)
        self._told = set(self._agents.nodes)
        readings: dict[str, NodeReading] = {}
        lost: dict[str, str] = {}
        for answer in self._agents.ask(LOOK, msgspec.msgpack.encode(order), deadline_s=ANSWER_S):
            try:
                if answer.data is None:
                    lost[answer.node] = answer.reason or "no answer"
                    continue
                readings[answer.node] = msgspec.msgpack.decode(answer.data, type=NodeReading)
                self._missed.pop(answer.node, None)
            except (ValueError, RecursionError) as e:  # one damaged answer is one node's
                lost[answer.node] = f"its answer is damaged: {str(e)[:100]}"
        for node in lost:
            self._missed[node] = self._missed.get(node, 0) + 1
        return readings, {n: why for n, why in lost.items() if self._missed[n] >= SILENT_TIMES}

    def gather(self, job_id: str | None) -> Snapshot:
        return self._agents.gather(job_id=job_id)

    def end_process(self, node_id: str, pid: int, start_ticks: int) -> str | None:
        order = msgspec.msgpack.encode(EndOrder(node_id=node_id, pid=pid, start_ticks=start_ticks))
        answers = self._agents.ask(END, deadline_s=ANSWER_S, payloads={node_id: order})
        return None if any(a.data == b"1" for a in answers) else NO_DRIVER

    def stop(self) -> None:
        try:
            self._agents.stop()
        except RayRlDebugError:
            pass  # the cluster is gone, and they with it


def look_options(samples: int, interval_s: float) -> CollectOptions:
    """A look has to be over soon."""
    return CollectOptions(samples=samples, interval_s=interval_s, timeout_s=20.0)
