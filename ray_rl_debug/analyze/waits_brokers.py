"""Edges from servers whose threads hold a request back until another client sends something: stores, brokers of jobs, meeting points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ray_rl_debug.analyze.await_chains import is_read_in_part
from ray_rl_debug.analyze.connections import clients, is_served, lacks_listener, socket_owners
from ray_rl_debug.analyze.coroutines import is_apart, is_write, serves, waits_for_requests
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kernel_calls import descriptor, kernel_call
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, Kind
from ray_rl_debug.analyze.known_edges import all_waiters
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.pauses import sleeps
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import has_orphans, to_unseen
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Socket

_HELD_BACK = frozenset({Kind.EVENT, Kind.QUEUE})


def broker_edges(view: View) -> Iterator[Edge]:
    """From a server with a request in hand, all of whose other threads read at clients, to each of these: what it waits for may come from any.

    Where each of its threads keeps a request back, and a further one would end that, all its clients wait at it, and one for another.
    """
    for one in view.like(lambda shape: shape.stands_in(_HELD_BACK)):
        listening = [s for s in one.process.sockets or () if s.state == "LISTEN"]
        if not listening and not any(s.state == "ESTABLISHED" and is_served(one, s) for s in one.process.sockets or ()):
            continue
        ports = {s.fd for s in listening if s.fd is not None}
        own = [t for t in one.threads if t.place.path and t.place.kind not in IDLE_KINDS and not _listens(t, ports)]
        held = [t for t in own if t.place.kind in _HELD_BACK]
        read = [(t, s) for t in own if t not in held and (s := _read_by(one, t)) is not None]
        unread = [t for t in own if t not in held and _reads_unread(one, t)]
        if not held or len(held) + len(read) + len(unread) < len(own):
            continue
        for thread in unread:
            what = f"the other end of descriptor {descriptor(thread.kernel)}" if thread.kernel is not None else f"what {thread.called} waits for"
            yield to_unseen(one, what, Why.MESSAGE)
        if not read and not unread and len(held) > 1 and all(_is_brought_by_requests(t) for t in held):
            yield from _to_clients(view, one, len(held))
        for thread, socket in read:
            for key, _ in clients(view, one, socket, socket_owners(view)):
                evidence = f"thread {held[0].called} waits inside of it, and {thread.called} reads what this client sends"
                yield Edge(source=one.key, target=key, why=Why.MESSAGE, evidence=evidence, certainty=Certainty.LIKELY)


def loop_broker_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """The same of a server of coroutines: each keeps a request back until another one brings something, or reads at a client.

    Anybody else who has something to do, and does not wait for the server, may connect to it and bring it as well.

    Args:
        known: The edges found so far.
    """
    told = {e.source for e in known}
    for one in view.at(Kind.LOOP_IDLE):
        if not keeps_requests_back(one, unread=True):
            continue
        connected, is_read = clients_of(view, one), keeps_requests_back(one)
        for key in sorted(connected) if is_read else ():
            evidence = "each of its coroutines keeps a request back until another one brings something, or reads what a client sends"
            yield Edge(source=one.key, target=key, why=Why.MESSAGE, evidence=evidence, certainty=Certainty.LIKELY, among=_CLIENTS)
        if connected and has_orphans(view, one):
            yield msgspec.structs.replace(to_unseen(one, f"a connection to pid {one.process.pid}", Why.MESSAGE), among=_CLIENTS)
        behind = all_waiters(one.key, known) if connected else set()
        others = [o for o in view if _may_bring(o) and o.key not in {one.key, *connected, *behind}] if connected else []
        goes_on = [o for o in others if is_read or o.is_at_work or sleeps(o)]
        if connected and one.key not in told and (has_orphans(view, one) or (others and not goes_on)):
            yield msgspec.structs.replace(to_unseen(one, "what others than its clients bring", Why.MESSAGE), among=_CLIENTS)
        for other in goes_on:
            evidence = f"its coroutines keep requests back, and {other.identity.label}, which {other.does()}, may connect and bring what ends that"
            yield Edge(source=one.key, target=other.key, why=Why.MESSAGE, evidence=evidence, certainty=Certainty.POSSIBLE, among=_CLIENTS)


def _may_bring(one: Seen) -> bool:
    """Is it of the job, and does it neither rest nor listen?"""
    rests = one.is_idle or (one.telling is not None and one.telling.listens)
    return not rests and not one.has_ended and one.process.kind in _OF_JOB


_OF_JOB = frozenset({"child", "named", "ray-worker", "driver"})
_CLIENTS = "its clients"


def keeps_requests_back(one: Seen, *, unread: bool = False) -> bool:
    """Is it a server, some of whose coroutines wait for what further requests bring, as their source tells, and do all others read at clients?

    Args:
        unread: Or may it be one, for all that was read?
    """
    # one that was not read to its end may do something else than read at a client
    asked = [t for t in one.process.async_tasks or () if not serves(t) or (not unread and is_read_in_part(t))]
    tasks = [t for t in one.process.async_tasks or () if waits_for_requests(t, unread=unread) or (t in asked and not is_apart(t))]
    serves_at = any(s.state == "LISTEN" or is_served(one, s) for s in one.process.sockets or ())
    if not tasks or not (serves_at or lacks_listener(one)) or one.is_stopped:
        return False
    if any(t.place.path and t.place.kind not in IDLE_KINDS and t.place.kind is not Kind.LOOP_IDLE for t in one.threads):
        return False
    held = [t for t in tasks if waits_for_requests(t, unread=unread)]
    return bool(held) and all(t in held or (t.awaited is not None and t.awaited.kind == "socket" and not is_write(t.awaited)) for t in tasks)


def clients_of(view: View, one: Seen) -> set[str]:
    """Processes that were seen at the other ends of the connections that it serves, or may serve where it was not read at which port it does."""
    served = [s for s in one.process.sockets or () if s.state != "LISTEN" and (is_served(one, s) or lacks_listener(one))]
    return {key for s in served for key, _ in clients(view, one, s, socket_owners(view))}


def _reads_unread(one: Seen, thread: SeenThread) -> bool:
    """Does it read at a descriptor of which nobody knows what it is? Or is its call unknown?"""
    if thread.kernel is None and thread.place.kind is not Kind.CODE and one.process.threads:
        return True
    fd = descriptor(thread.kernel) if kernel_call(thread.kernel) in ("recv", "read") else None
    return fd is not None and fd not in {s.fd for s in one.process.sockets or ()} | {f.fd for f in one.process.files or ()}


def _is_brought_by_requests(thread: SeenThread) -> bool:
    """Does what answers a request wait for what another request brings, as its source tells?"""
    own = thread.place.own
    return thread.answers and own is not None and thread.frames[own].brings is True


def _to_clients(view: View, one: Seen, count: int) -> Iterator[Edge]:
    for socket in one.process.sockets or ():
        for key, _ in clients(view, one, socket, socket_owners(view)) if socket.state != "LISTEN" and is_served(one, socket) else ():
            evidence = f"each of its {count} threads keeps a request back until another one brings something, and this client waits there itself"
            yield Edge(source=one.key, target=key, why=Why.MESSAGE, evidence=evidence, certainty=Certainty.LIKELY)


def _listens(thread: SeenThread, ports: set[int]) -> bool:
    waited = thread.kernel.waits_on_fds if thread.kernel is not None else None
    return thread.listens or (bool(waited) and ports.issuperset(waited or ()))


def _read_by(one: Seen, thread: SeenThread) -> Socket | None:
    """The connection of a client at which a thread waits for its next request."""
    fd = descriptor(thread.kernel) if kernel_call(thread.kernel) in ("recv", "read") else None
    socket = next((s for s in one.process.sockets or () if s.fd == fd), None) if fd is not None else None
    return socket if socket is not None and socket.state != "LISTEN" and is_served(one, socket) else None
