"""This machine looked at by ourselves, for nodes where no agent can go: a silent raylet, one without room for a process, or none reachable."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

import msgspec

from ray_rl_debug.cluster.driver_messages import AgentNode
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.model.errors import RayRlDebugError
from ray_rl_debug.model.snapshot import Node, RayNode

FREE_DESCRIPTORS = 64
"""A raylet that cannot open the pipes of a new worker aborts, and with it the node; 64 is far from that."""


class LocalLooks:
    """Collectors in threads, one per node of this machine."""

    def __init__(
        self,
        raylets: Mapping[str, int],
        names: Mapping[str, str],
        collect: CollectOptions,
        drivers: Sequence[tuple[str, int]],
        skip: Mapping[str, tuple[int, ...]],
        stop: threading.Event,
    ) -> None:
        self._raylets = raylets
        self._names = names
        self._collect = collect
        self._drivers = drivers
        self._skip = skip
        self._stop = stop
        self._threads: dict[str, threading.Thread] = {}
        self._found: dict[str, Node] = {}

    def start(self, nodes: Sequence[RayNode], *, agent_ips: set[str], room_s: float | None = None) -> None:
        """Begin to look at `nodes`. Drivers belong to the first of them, unless an agent at the same address looks at them.

        With `room_s` the window is cut to what fits into that many seconds.
        """
        taken: set[str] = set(agent_ips)
        for node in [n for n in nodes if n.node_id not in self._threads]:
            drivers = () if node.ip in taken else self._drivers
            taken.add(node.ip)
            agent_node = AgentNode(node_id=node.node_id, name=self._names[node.node_id], ip=node.ip, skip_pids=self._skip.get(node.node_id, ()))
            asked = msgspec.structs.replace(agent_node.options(self._collect, drivers), raylet_pid=self._raylets.get(node.node_id))
            if room_s is not None:
                samples = min(asked.samples, 1 + int(room_s / 2 / asked.interval_s))
                asked = msgspec.structs.replace(asked, samples=samples, timeout_s=max(1.0, room_s / 2))
            thread = threading.Thread(target=self._look, args=(node.node_id, asked), daemon=True)
            self._threads[node.node_id] = thread
            thread.start()

    @property
    def begun(self) -> frozenset[str]:
        """Ids of the nodes that are looked at, or were."""
        return frozenset(self._threads)

    @property
    def found(self) -> dict[str, Node]:
        """What has been seen so far, by node id."""
        return dict(self._found)

    def finish(self, until: float, needed: Container[str]) -> dict[str, Node]:
        """What was seen by the time `until` (monotonic); only for the nodes `needed` it is waited."""
        for node_id, thread in list(self._threads.items()):
            if node_id in needed:
                thread.join(max(0.0, until - time.monotonic()))
        return self.found

    def _look(self, node_id: str, asked: CollectOptions) -> None:
        from ray_rl_debug.collect.node import collect_node

        try:
            self._found[node_id] = collect_node(asked, stop=self._stop)
        except RayRlDebugError:
            pass  # the raylet and all it started are gone: the node stays silent


def has_room(raylet: int | None, proc: Path = PROC) -> str | None:
    """Why no process may be started on a raylet of this machine; None when it has room, or when we cannot tell."""
    if raylet is None:
        return None
    row = next((line.split() for line in (read_text(proc / str(raylet) / "limits") or "").splitlines() if line.startswith("Max open files")), None)
    try:
        used = len(os.listdir(proc / str(raylet) / "fd"))
    except OSError:
        return None
    if row is None or len(row) < 4 or not row[3].isdigit():
        return None
    free = int(row[3]) - used
    return f"its raylet (process {raylet}) has only {free} of {row[3]} file descriptors left" if free < FREE_DESCRIPTORS else None
