"""Waits at a store: a process that only keeps what others bring. Whoever waits there waits for those who could bring it.

Two kinds are known by how they are built. A manager of multiprocessing runs one thread for each client, and the client's thread stands at the
queue or lock itself. A store of torch (TCPStore) is served by a thread in C of one of its own clients, so that this client is connected to itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.connections import Endpoint, endpoint_key, is_rays, socket_owners
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.known_edges import all_waiters
from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import is_tracker
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Frame

_OF_CLIENT = ("multiprocessing/managers.py", "serve_client")
_HELD = ("queue.py", "threading.py")
"""Files of the innermost frame of a client's thread that waits for other clients; one between two requests stands in a connection. A plain lock
is taken in C, and shows no frame of its own."""


def store_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """From managers at which somebody waits to their other clients, and from clients of one store to those that do not wait there."""
    yield from _of_managers(view, known)
    yield from _of_meeting_places(view, known)


def _of_managers(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    if not any(stack.once(_is_held) for stack in view.stacks):
        return
    waiting: dict[str, set[str]] = defaultdict(set)
    for edge in known:
        waiting[edge.target].add(edge.source)
    for key in sorted(waiting.keys() & view.seen.keys()):
        manager = view.seen[key]
        if not any(t.stack.once(_is_held) for t in manager.threads):
            continue
        # one whose parent was not read may belong to them too
        family = [s for s in view if s.node is manager.node and s.process.ppid in (None, manager.process.ppid, *_pids(view, waiting[key]))]
        clients = {s.key: s for s in (*_unix_clients(view, manager), *family) if s is not manager and not is_tracker(s)}
        others = [s for s in clients.values() if s.key not in waiting[key]]
        living = [s for s in others if not _has_ended(s)]
        working = [s for s in living if not s.is_idle]
        # where the parent of one was not read, the real one may be another
        sure = Certainty.POSSIBLE if any(s.process.ppid is None for s in working or living or others) else Certainty.LIKELY
        for other in working or living or others:
            doing = "has ended" if _has_ended(other) else other.does()
            evidence = f"{manager.name} keeps what its clients put; pid {other.process.pid} could put something: it {doing}"
            yield Edge(source=key, target=other.key, why=Why.CHILD_QUEUE, evidence=evidence, certainty=sure)


def _is_held(frames: Sequence[Frame]) -> bool:
    """Does a thread of a manager wait for another client in the middle of a client's request?"""
    named = [(short_name(f.function), f.file) for f in frames]
    return any(file.endswith(_OF_CLIENT[0]) and name == _OF_CLIENT[1] and (n == 0 or named[0][1] in _HELD) for n, (name, file) in enumerate(named))


def _pids(view: View, keys: set[str]) -> list[int]:
    return [view.seen[k].process.pid for k in keys if k in view.seen]


def _has_ended(one: Seen) -> bool:
    return one.has_ended


def _unix_clients(view: View, server: Seen) -> list[Seen]:
    """Processes at the other ends of the Unix sockets that a server has accepted."""
    paths = {s.local for s in server.process.sockets or () if s.family == "unix" and s.state == "LISTEN"}
    ends = {s.peer_inode for s in server.process.sockets or () if s.family == "unix" and s.state != "LISTEN" and s.local in paths}
    return [one for one in view if one.node is server.node and any(s.inode in ends for s in one.process.sockets or () if s.inode is not None)]


def _of_meeting_places(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """Of those who wait for a message, and of whom it is not told already whose."""
    told = {e.source for e in known if e.why is Why.RECEIVERS}
    frozen = (one for one in view.at(Kind.CHANNEL) if one.motion is Motion.FROZEN and one.key not in told)
    waiting = [(one, at) for one in frozen if (at := _only_endpoint(view, one)) is not None]
    if not waiting:
        return
    clients = _clients(view, {at for _, at in waiting})
    for one, at in waiting:
        meeting = clients[at]
        host = next((s for s in meeting.values() if _listens(s, at)), None)
        if host is None:
            continue
        here = {w.key for w, place in waiting if place == at}
        others = [other for other in meeting.values() if other.key not in here and not other.is_idle]
        if others and all(_waits_for_end_of(view, other, here) for other in others):
            others = [view.seen[key] for key in sorted(here - {one.key})] or others
        # where all who meet there wait for each other, one that has failed may have had to bring what is awaited
        ended = _failed_fellows(view, one, host) if others and {o.key for o in others} <= all_waiters(one.key, known) | here else []
        for other in (*others, *ended):
            if other.key != one.key:
                evidence = f"it waits at the store of {host.name} (port {at[1]}), where {len(meeting)} processes meet; {other.name} {other.does()}"
                sure = Certainty.POSSIBLE if other in ended and other.process.exit_code is None else Certainty.LIKELY
                yield Edge(source=one.key, target=other.key, why=Why.MESSAGE, evidence=evidence, certainty=sure)


def _failed_fellows(view: View, one: Seen, host: Seen) -> list[Seen]:
    """Processes of the same parent as one who waits, or of the store's, that were killed or ended with an error. Nobody keeps their connections."""
    parents = {one.process.ppid, host.process.ppid, host.process.pid, one.process.pid} - {None, 1}
    return [o for o in view if o.node is one.node and o.has_ended and o.process.ppid in parents and o.process.exit_code != 0]


def _waits_for_end_of(view: View, one: Seen, here: set[str]) -> bool:
    """Does it only wait for the end of those who wait at the store, all of whom it has started? Then it brings them nothing."""
    children = view.children(one)
    return one.kind is Kind.CHILD and bool(children) and all(child.key in here or child.has_ended for child in children)


def _only_endpoint(view: View, one: Seen) -> Endpoint | None:
    """Where its only connection leads that it has opened itself, Ray's left out."""
    owners, served = socket_owners(view), {endpoint_key(one.node.name, s.local)[1] for s in one.process.sockets or () if s.state == "LISTEN"}
    open_ = [s for s in one.process.sockets or () if s.family.startswith("tcp") and s.state == "ESTABLISHED" and s.remote is not None]
    ends = {
        endpoint_key(one.node.name, s.remote or "") for s in open_ if s.local.rpartition(":")[2] not in served and not is_rays(view, one, s, owners)
    }
    return next(iter(ends)) if len(ends) == 1 else None


def _clients(view: View, wanted: set[Endpoint]) -> dict[Endpoint, dict[str, Seen]]:
    """Processes by the endpoint to which they are connected."""
    found: dict[Endpoint, dict[str, Seen]] = {at: {} for at in wanted}
    for (_, remote), ends in socket_owners(view).items():
        if remote in found:
            found[remote] |= {key: view.seen[key] for key, _ in ends if key in view.seen}
    return found


def _listens(one: Seen, at: Endpoint) -> bool:
    return any(s.state == "LISTEN" and s.local.rpartition(":")[2] == at[1] for s in one.process.sockets or ())
