"""Where on the timeline a process stands: cluster > node > role > rank, and in which order rows are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View, build_view
from ray_rl_debug.model.snapshot import Snapshot
from ray_rl_debug.timeline.model import CLUSTER, Track, wall_clock

_FIRST = ("verdict", "snapshots", "steps", "waiting tasks", "driver")
"""Rows of the cluster and roles of a node that are shown before the others."""
_ROWS = ("state", "phase", "tasks", "collectives", "phase (sampled)", "stack (sampled)", "sessions", "submits")
"""Rows of one process, in the order they are read in."""


class TrackPlace(msgspec.Struct, frozen=True):
    """A process's place."""

    path: tuple[str, ...]
    label: str
    """How its rank is called in tables: unique within the timeline."""
    clock: str
    node: str | None = None


class Layout:
    """Places of processes; what a snapshot does not know is placed by what the source itself tells."""

    def __init__(
        self,
        places: Mapping[tuple[str, int], TrackPlace],
        nodes: Mapping[str, str],
        descriptions: Mapping[tuple[str, ...], str],
        starts_ns: Mapping[tuple[str, ...], int] | None = None,
    ) -> None:
        """
        Args:
            places: By (node name, pid).
            nodes: Name of a node by Ray's node id, host name or IP.
            descriptions: Texts for the groups of rows.
            starts_ns: When processes began, by their path, in their node's wall clock.
        """
        self._places = dict(places)
        self._nodes = dict(nodes)
        self._starts_ns = dict(starts_ns or {})
        self.descriptions = dict(descriptions)

    def seen_nodes(self) -> tuple[str, ...]:
        """Names of all nodes known so far."""
        return tuple(sorted({*self._nodes.values(), *(n for n, _ in self._places)}))

    def node(self, known_as: str | None) -> str | None:
        """A node's name by any of its names; Ray's long id is shortened where no snapshot tells the name."""
        if known_as is None:
            return None
        found = self._nodes.get(known_as)
        if found is None:
            short = known_as[:8] if re.fullmatch(r"[0-9a-f]{56}", known_as) else known_as
            found = self._nodes[known_as] = short if short.startswith("node") else f"node {short}"
        return found

    def process(self, node: str | None, pid: int | None, *, role: str | None = None, label: str | None = None) -> TrackPlace:
        """The place of a process.

        Args:
            node: Any name of its node.
            pid: Its process id.
            role: Its role or class, for a process no snapshot knows.
            label: Its name, for a process no snapshot knows.
        """
        name = self.node(node)
        if pid is not None:
            known = self._places.get((name, pid)) if name is not None else self._only(pid)
            if known is not None:
                return known
        shown = label or role or "process"
        if pid is not None:
            shown = f"{shown} (pid {pid})"
        place = TrackPlace((CLUSTER, name or "unknown node", role or "other", shown), shown, wall_clock(name), name)
        if name is not None and pid is not None:
            self._places[(name, pid)] = place
        return place

    def rank(self, role: str, rank: int) -> TrackPlace | None:
        """The place of a rank of a role, where a snapshot knows exactly one of this name."""
        wanted = f"{role}/{rank}"
        found = [p for p in self._places.values() if p.label == wanted]
        return found[0] if len(found) == 1 else None

    def started_ns(self, place: TrackPlace) -> int | None:
        """When the process there began, where a snapshot knows it."""
        return self._starts_ns.get(place.path)

    def _only(self, pid: int) -> TrackPlace | None:
        found = [p for (_, known), p in self._places.items() if known == pid]
        return found[0] if len(found) == 1 else None


def build_layout(snapshots: Sequence[Snapshot], views: Sequence[View] | None = None) -> Layout:
    """The layout of all processes that any of the snapshots knows; the last one counts."""
    places: dict[tuple[str, int], TrackPlace] = {}
    nodes: dict[str, str] = {}
    descriptions: dict[tuple[str, ...], str] = {}
    starts: dict[tuple[str, ...], int] = {}
    for view in views if views is not None else [build_view(s) for s in snapshots]:
        for node in view.snapshot.nodes:
            for alias in (node.node_id, node.ip, node.name):
                if alias:
                    nodes[alias] = node.name
        for ray_node in view.ray.nodes if view.ray else ():
            nodes.setdefault(ray_node.node_id, ray_node.host or ray_node.ip)
        labels = [s.identity.label for s in view]
        for seen in view:
            place = _place(seen, labels.count(seen.identity.label) == 1)
            places[(seen.identity.node, seen.identity.pid)] = place
            descriptions[place.path] = _about(seen)
            if seen.process.start_time_s is not None:
                starts[place.path] = int(seen.process.start_time_s * 1e9)
    return Layout(places, nodes, descriptions, starts)


def _place(seen: Seen, is_unique: bool) -> TrackPlace:
    identity = seen.identity
    role = identity.role or identity.class_name or identity.kind
    label = identity.label if is_unique or f"(pid {identity.pid})" in identity.label else f"{identity.label} (pid {identity.pid})"
    return TrackPlace((CLUSTER, identity.node, role, label), label, wall_clock(identity.node), identity.node)


def _about(seen: Seen) -> str:
    identity = seen.identity
    parts = [f"pid {identity.pid}", identity.class_name, f"actor {identity.actor}" if identity.actor else None]
    if identity.rank is not None:
        parts.append(f"rank {identity.rank} of {identity.world_size or 'unknown'}")
    return ", ".join(p for p in parts if p)


def in_order(tracks: Sequence[Track]) -> list[Track]:
    """Tracks in the order they are shown."""
    return sorted(tracks, key=lambda t: [_key(part, depth) for depth, part in enumerate(t.path)])


def _key(part: str, depth: int) -> tuple[int, list[tuple[int, str]]]:
    order = _FIRST if depth <= 2 else _ROWS
    natural = [(int(x), "") if x.isdigit() else (-1, x) for x in re.split(r"(\d+)", part) if x]
    return (order.index(part) if part in order else len(order), natural)
