"""Several snapshots as one: one file per node from ``srun``, or the same cluster taken in parts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ray_rl_debug.model.gaps import NO_RAY_TABLES_IN_FILE, TRUNCATED
from ray_rl_debug.model.snapshot import Gap, Node, Snapshot


def merge_snapshots(snapshots: Sequence[Snapshot]) -> Snapshot:
    """The union of nodes and gaps; Ray's tables from the newest snapshot that has them.

    A machine that is in several snapshots (same boot id, PID namespace and name) is taken from the newest; the older
    capture is left out and named in a gap. `snapshots` must not be empty.
    """
    if len(snapshots) == 1:
        return snapshots[0]
    ordered = sorted(snapshots, key=lambda s: s.taken_time_s)
    nodes: dict[tuple[str | None, str | None, str], Node] = {}
    gaps: dict[Gap, None] = {}
    for snapshot in ordered:
        gaps.update(dict.fromkeys(snapshot.gaps))
        for node in snapshot.nodes:
            key = (node.boot_id, node.pid_namespace, node.name)
            older = nodes.get(key)
            if older is None:
                nodes[key] = node
                continue
            nodes[key] = max(older, node, key=lambda n: n.started_time_s)
            gaps[
                Gap(
                    id=TRUNCATED,
                    where=node.name,
                    what="an older capture of this node",
                    reason="several files hold this node; the newest capture is used",
                )
            ] = None
    with_tables = [s for s in ordered if s.ray is not None]
    kept = tuple(g for g in gaps if not (with_tables and g.id == NO_RAY_TABLES_IN_FILE))
    newest = ordered[-1]
    jobs = {s.job_id for s in ordered}
    return msgspec.structs.replace(
        newest,
        job_id=newest.job_id if len(jobs) == 1 else None,
        nodes=_named_apart(tuple(nodes.values())),
        ray=with_tables[-1].ray if with_tables else None,
        gaps=kept,
        timing={},
    )


def _named_apart(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Different machines with one name (containers) are numbered."""
    names = [n.name for n in nodes]
    seen: dict[str, int] = {}
    result = []
    for node in nodes:
        if names.count(node.name) > 1:
            seen[node.name] = seen.get(node.name, 0) + 1
            if seen[node.name] > 1:
                node = msgspec.structs.replace(node, name=f"{node.name}#{seen[node.name]}")
        result.append(node)
    return tuple(result)
