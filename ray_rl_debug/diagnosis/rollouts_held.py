"""Joins the rows of a store of rollouts with the processes that hold them: a runner's threads carry its name in the store."""

from __future__ import annotations

import msgspec

from ray_rl_debug.analyze.identity import worker_of
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Evidence, Finding, Who
from ray_rl_debug.model.snapshot import Runner

Held = dict[tuple[str | None, int | None], tuple[Runner, float | None]]
"""By node and pid: the row, and for how long at least it has been busy."""


def find_held(view: View) -> Held:
    """The rows of processes that are seen; a name that several processes carry belongs to the one on the row's own host, or to none."""
    rows = {r.worker_id: r for n in view.snapshot.nodes for r in n.runners}
    if not rows:
        return {}
    now = max((t for r in rows.values() for t in r.times), default=None)
    named: dict[str, list[tuple[str, int]]] = {}
    for one in view:
        worker = worker_of(one.process)
        if worker in rows:
            named.setdefault(worker, []).append((one.identity.node, one.process.pid))
    found: Held = {}
    for worker, places in named.items():
        row = rows[worker]
        fitting = places if len(places) == 1 else [p for p in places if p[0] == row.host]
        if len(fitting) == 1:
            since = row.busy_time_s if row.rollout_id else row.idle_time_s
            found[fitting[0]] = (row, now - since if now is not None and since is not None else None)
    return found


def describe_held(row: Runner, for_s: float | None) -> str:
    """``Worker-1 holds rollout ro-1 (attempt at-2) for at least 20 s``."""
    age = f" for at least {for_s:.0f} s" if for_s is not None else ""
    if row.rollout_id is None:
        return f"{row.worker_id} holds no rollout: {row.status or 'unknown'}{age}"
    attempt = f" (attempt {row.attempt_id})" if row.attempt_id else ""
    return f"{row.worker_id} holds rollout {row.rollout_id}{attempt}{age}"


def with_rollouts(finding: Finding, held: Held) -> Finding:
    """The finding with the rollouts that the accused hold."""
    mine = [(w, *held[(w.node, w.pid)]) for w in finding.who if (w.node, w.pid) in held]
    if not mine:
        return finding
    more = tuple(Evidence(kind="task", where=w.label, text=f"the store says: {describe_held(row, for_s)}") for w, row, for_s in mine)
    return msgspec.structs.replace(finding, who=tuple(_named(w, held) for w in finding.who), evidence=(*finding.evidence, *more))


def _named(who: Who, held: Held) -> Who:
    row = held[(who.node, who.pid)][0] if (who.node, who.pid) in held else None
    return msgspec.structs.replace(who, task=f"rollout {row.rollout_id}") if row is not None and row.rollout_id and who.task is None else who
