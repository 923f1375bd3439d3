"""Actors that may be asked for their coroutines, and a snapshot's nodes with what they told.

Only async actors with a name are asked, only when their event loop is seen idle and nothing is queued at them: a call that a busy or synchronous
actor does not answer would stay in its queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS
from ray_rl_debug.analyze.main_activity import see_threads
from ray_rl_debug.analyze.thread_scores import LOOP_THREADS
from ray_rl_debug.collect.async_tasks.asked import as_read, decode_tasks
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import AsyncTask, CoreWorker, Node, Process, RayActor

MAX_ASKED = 64
UNREAD = frozenset({gaps.ASYNC_UNREAD, gaps.MEMORY_REFUSED})


def choose_actors(actors: Iterable[RayActor], cores: Iterable[CoreWorker], nodes: Iterable[Node]) -> list[tuple[RayActor, Node, Process]]:
    """Actors whose coroutines could not be read and that may be asked for them."""
    queued = {(c.node_id, c.pid): c.queue_length for c in cores}
    by_place = {(a.node_id, a.pid): a for a in actors if a.state == "ALIVE" and a.name and a.namespace is not None and a.pid}
    found = []
    for node in nodes:
        for process in node.processes:
            actor = by_place.get((node.node_id, process.pid))
            if actor is None or process.async_tasks is not None or queued.get((node.node_id, process.pid)) != 0:
                continue
            if process.state in ("S", "R") and _loop_is_idle(node, process):
                found.append((actor, node, process))
    return found[:MAX_ASKED]


def _loop_is_idle(node: Node, process: Process) -> bool:
    """Is it an async actor, and does its loop wait for events in the last sample?"""
    threads = see_threads(node, process, process.samples[-1]) if process.samples else ()
    loops = [t for t in threads if (t.name or "").startswith(LOOP_THREADS)]
    return bool(loops) and all(t.place.kind in IDLE_KINDS for t in loops)


def with_answers(nodes: Mapping[str, Node], asked: Sequence[tuple[RayActor, Node, Process]], told: Mapping[str, bytes]) -> dict[str, Node]:
    """The nodes, with what the actors told in the place of the gaps."""
    tasks: dict[tuple[str, int], tuple[AsyncTask, ...]] = {}
    for actor, node, process in asked:
        answer = decode_tasks(told.get(actor.actor_id, b""))
        if answer is not None:
            tasks[node.name, process.pid] = tuple(as_read(t, {}) for t in answer)
    return {key: _with_tasks(node, tasks) for key, node in nodes.items()}


def _with_tasks(node: Node, tasks: Mapping[tuple[str, int], tuple[AsyncTask, ...]]) -> Node:
    own = {pid: found for (name, pid), found in tasks.items() if name == node.name}
    if not own:
        return node
    processes = tuple(msgspec.structs.replace(p, async_tasks=own[p.pid]) if p.pid in own else p for p in node.processes)
    closed = {f"{node.name}/{pid}" for pid in own}
    return msgspec.structs.replace(node, processes=processes, gaps=tuple(g for g in node.gaps if g.where not in closed or g.id not in UNREAD))
