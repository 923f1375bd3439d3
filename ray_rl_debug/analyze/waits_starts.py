"""Workers of Ray that are being started: an actor with room for it is made as soon as one of them is there.

A worker may be started through a program of the job's, as `uv run` or a container. Until a worker has told Ray of itself, no table of Ray knows it.
Before it is started, an agent of Ray on its node prepares what its runtime environment asks for, as packages, by programs of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.room import fits, need_of, unplaceable
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import RayActor, RayTask


def start_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """From actors and tasks that have room and no process, and for which somebody waits, to what prepares a worker: any of them may be theirs."""
    pending: dict[str, RayActor | RayTask] = {
        node_of(NodeKind.ACTOR, key): a for key, a in view.actors.items() if a.state == "PENDING_CREATION" and not a.pid
    }
    tasks = {node_of(NodeKind.TASK, key): t for key, t in view.tasks.items() if t.state == "PENDING_NODE_ASSIGNMENT"}
    awaited = sorted({e.target for e in known if e.target in pending or e.target in tasks}) if pending or tasks else []
    starting = [(one, told) for one in view if (told := _told(view, one)) is not None] if awaited else []
    for node in awaited:
        need = need_of(view, pending[node] if node in pending else tasks[node])
        if unplaceable(view, need) is not None or (need.amounts and not fits(view, need)):
            continue
        for one, told in starting:
            if node in tasks and told is not PREPARES:
                continue  # a task takes any worker that is free
            evidence = f"pid {one.process.pid} {told}: {one.process.title[:60]}"
            yield Edge(source=node, target=one.key, why=Why.STARTS, evidence=evidence, certainty=Certainty.LIKELY)


PREPARES = "was started by Ray's agent that prepares the environments of workers"
STARTED = "was started for a worker of Ray that has not told of itself yet"
_AGENT = "ray::RuntimeEnvAgent"


def _told(view: View, one: Seen) -> str | None:
    """What a process has to do with workers that are not there yet; None where it has nothing."""
    return PREPARES if _prepares(view, one) else STARTED if _starts(view, one) else None


def _prepares(view: View, one: Seen) -> bool:
    """Is it a program of the agent's, such as an installer?"""
    return (one.node.name, one.process.ppid) in view.once(_agents) and not one.has_ended


def _agents(view: View) -> frozenset[tuple[str, int | None]]:
    """Ray's own processes are no part of the job, and so none that was looked into."""
    return frozenset((node.name, p.pid) for node in view.snapshot.nodes for p in node.processes if p.title.startswith(_AGENT))


def _starts(view: View, one: Seen) -> bool:
    """Was it started by a raylet, and has neither it nor what it has started told Ray of itself?"""
    if one.process.kind != "ray-worker" or one.has_ended or _has_told(one):
        return False
    return not any(_has_told(child) for child in view.children(one))


def _has_told(one: Seen) -> bool:
    return one.core is not None or one.actor is not None or one.process.title.startswith("ray::")
