"""Edges inside inference engines, and from those that hand them weights: who waits for which part.

Server to engine core while requests or calls are in flight; engine core to the workers whose answer it waits for; all of them to a part that is
dead. The collectives of the workers are the ranks' own edges. A trainer's rank that sends weights over a Unix socket waits for whoever is connected
to it, or, where nobody is, for the engine of that machine that should be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ray_rl_debug.analyze.connections import RAY_PROCESSES
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.engines import Engine, rests
from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.lost_ends import has_unseen_peer, lacks_child
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import has_orphans, to_unseen
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Socket


def engine_edges(view: View) -> Iterator[Edge]:
    """All edges of this kind."""
    for engine in view.engines:
        yield from _server_edges(view, engine)
        yield from _core_edges(view, engine)
    for one in (o for o in view.at(Kind.CHANNEL) if not o.is_stopped):
        found = list(_weight_edges(view, one)) if one.identity.part is None and one.phase == "weight_sync" else []
        yield from found
        if not found and not _is_at_kernel(one) and (one.identity.part is None or one.identity.part.part == "server"):
            yield from _child_edges(view, one)


def _is_at_kernel(one: Seen) -> bool:
    """Does it wait at a message queue or semaphore of the kernel's? Who uses that is told elsewhere, and an engine has none."""
    thread = one.followed or one.telling
    return thread is not None and kernel_call(thread.kernel) in ("message", "semaphore")


def _server_edges(view: View, engine: Engine) -> Iterator[Edge]:
    inside = [view.seen[k] for k in (*engine.cores, *engine.helpers) if view.seen[k].identity.part is not None]
    serving = [p for p in inside if p.identity.part is not None and p.identity.part.part != "coordinator" and not (p.identity.rank or 0)]
    targets = [p for p in serving if not rests(p)] or serving
    for server in (view.seen[s] for s in engine.servers):
        for dead in (view.seen[k] for k in engine.dead):
            yield Edge(source=server.key, target=dead.key, why=Why.ENGINE, evidence=f"its {dead.name} is dead (state {dead.process.state})")
        if may_be_unseen(view, engine):
            yield to_unseen(server, f"the answers of its {engine.lost}", Why.ENGINE)
        elif engine.lost:
            evidence = f"its {engine.lost} {'is gone' if engine.ending is None else 'ends'}"
            yield Edge(source=server.key, target=node_of(NodeKind.GONE, engine.key), why=Why.ENGINE, evidence=evidence)
        if engine.requests + engine.calls:
            text = f"{in_flight(engine)}: {{}} {{}}"
            for part in targets:
                yield Edge(
                    source=server.key, target=part.key, why=Why.ENGINE, evidence=text.format(part.name, part.does()), certainty=Certainty.LIKELY
                )


def may_be_unseen(view: View, engine: Engine) -> bool:
    """Is the part that an engine seems to have lost perhaps one that lives, and was not seen, or whose parent was not read?"""
    if not engine.lost or engine.ending is not None:
        return False
    return any(has_unseen_peer(view, view.seen[k]) for k in engine.servers) or any(o.process.kind == "child" and o.process.ppid is None for o in view)


def _child_edges(view: View, one: Seen) -> Iterator[Edge]:
    """From a process that waits for a message to its children at work: one of them may send it, as an engine core does when it has started."""
    for child in view.children(one):
        if not rests(child) and child.process.state not in ("Z", "X"):
            evidence = f"it waits for a message; its child {child.name} {child.does()}"
            yield Edge(source=one.key, target=child.key, why=Why.MESSAGE, evidence=evidence, certainty=Certainty.POSSIBLE)


def in_flight(engine: Engine) -> str:
    """``3 requests in flight and 1 call without an answer``."""
    told = []
    if engine.requests:
        told.append(f"{engine.requests} request{'s' if engine.requests > 1 else ''} in flight")
    if engine.gated:
        told.append(f"{engine.gated} request{'s' if engine.gated > 1 else ''} held back")
    if engine.calls:
        told.append(f"{engine.calls} call{'s' if engine.calls > 1 else ''} to the engine without an answer")
    return " and ".join(told)


def _core_edges(view: View, engine: Engine) -> Iterator[Edge]:
    for key, below in engine.workers.items():
        core = view.seen[key]
        if core.kind is not Kind.CHANNEL or core.is_stopped:
            continue
        workers = [view.seen[w] for w in below]
        dead = [view.seen[k] for k in engine.dead if view.seen[k].process.ppid == core.process.pid]
        if not workers and not dead and not view.by_hand and any(p.part == "worker" for p in engine.names.parts):
            yield to_unseen(core, "the answers of its workers", Why.WORKERS)
        for worker in [*dead, *([w for w in workers if not rests(w)] or workers)]:
            doing = "is stopped" if worker.is_stopped else "is dead" if worker in dead else worker.does()
            evidence = f"it waits in {core.inside()} for the answers of its workers; {worker.name} {doing}"
            yield Edge(source=key, target=worker.key, why=Why.WORKERS, evidence=evidence, certainty=Certainty.LIKELY)


def _weight_edges(view: View, one: Seen) -> Iterator[Edge]:
    """From a rank that sends weights over a Unix socket."""
    for socket in listeners(one):
        peers = _connected(view, one, socket)
        if peers:
            for other in peers:
                evidence = f"it sends weights over {socket.local}; {other.name} is connected: it {other.does()}"
                yield Edge(source=one.key, target=other.key, why=Why.WEIGHTS, evidence=evidence, certainty=Certainty.LIKELY)
            return
        for engine in receivers(view, one, socket):
            text = f"it sends weights over {socket.local}, and nobody is connected"
            if engine.lost:
                yield Edge(source=one.key, target=node_of(NodeKind.GONE, engine.key), why=Why.WEIGHTS, evidence=f"{text}: the {engine.lost} is gone")
                continue
            parts = [view.seen[k] for k in (*engine.cores, *(w for ws in engine.workers.values() for w in ws), *engine.dead)]
            stuck = [p for p in parts if p.is_stopped or p.has_ended]
            workers = [p for p in parts if p.identity.part is not None and p.identity.part.part == "worker"]
            lacks = has_orphans(view, view.seen[engine.key]) or any(lacks_child(view, view.seen[k]) for k in engine.cores)
            if not stuck and not workers and lacks:
                yield to_unseen(one, "what a worker of the engine should take", Why.WEIGHTS)
                continue
            for part in stuck or workers or parts:
                doing = "is stopped" if part.is_stopped else part.does()
                yield Edge(source=one.key, target=part.key, why=Why.WEIGHTS, evidence=f"{text}; {part.name} {doing}", certainty=Certainty.LIKELY)


def listeners(one: Seen) -> list[Socket]:
    """Unix sockets with a path at which a process waits for others, Ray's left out."""
    return [s for s in one.process.sockets or () if s.family == "unix" and s.state == "LISTEN" and s.local and "/sockets/" not in s.local]


def _connected(view: View, one: Seen, socket: Socket) -> list[Seen]:
    ends = {s.peer_inode for s in one.process.sockets or () if s.local == socket.local and s.state != "LISTEN" and s.peer_inode is not None}
    return [
        other
        for other in view
        if other.node is one.node
        and other is not one
        and other.process.kind not in RAY_PROCESSES
        and any(s.inode in ends for s in other.process.sockets or ())
    ]


def receivers(view: View, one: Seen, socket: Socket) -> list[Engine]:
    """The engines on its machine that a rank's socket is for: the replica that its path names, else all."""
    here = [e for e in view.engines if e.node == one.node.name]
    named = _REPLICA.search(socket.local)
    if named is None or len(here) < 2:
        return here
    wanted = [e for e in here if _NUMBER.search(view.seen[e.key].identity.actor or "") and _replica(view, e) == named[1]]
    return wanted or here


_REPLICA = re.compile(r"replica-(\d+)")
_NUMBER = re.compile(r"_(\d+)_\d+$")


def _replica(view: View, engine: Engine) -> str | None:
    found = _NUMBER.search(view.seen[engine.key].identity.actor or "")
    return found[1] if found else None
