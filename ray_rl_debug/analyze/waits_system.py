"""Edges that the operating system tells: sockets and pipes to the process at the other end, parents to children."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ray_rl_debug.analyze.acceptors import accepted_by, are_copies, may_accept, waited_at
from ray_rl_debug.analyze.connections import (
    RAY_PROCESSES,
    Owners,
    endpoint_key,
    is_rays,
    is_served,
    lacks_client,
    lacks_listener,
    lacks_other_end,
    lacks_own_listener,
    listeners,
    socket_owners,
)
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.handlers import helpers_of, pool_fellows, waiting_thread
from ray_rl_debug.analyze.kernel_calls import CONNECTIONS, descriptor, kernel_call, told_by_files
from ray_rl_debug.analyze.kinds_of_places import THREAD_WAITS, Kind
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.pauses import kernel_was_read
from ray_rl_debug.analyze.pools import fetching_feeder
from ray_rl_debug.analyze.seen import Seen, describe_place
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_brokers import broker_edges
from ray_rl_debug.analyze.waits_children import (
    child_edges,
    has_process_pool,
    is_unseen_child,
    only_pool_may_set,
    pool_rests,
    takes_results,
    to_unseen,
    waits_for_work,
)
from ray_rl_debug.analyze.waits_datagrams import datagram_edges
from ray_rl_debug.analyze.waits_holders import holder_edges
from ray_rl_debug.analyze.waits_news import news_edges
from ray_rl_debug.analyze.waits_pipes import pipe_edges
from ray_rl_debug.analyze.waits_servers import edge_to_only_client, edge_to_silent_client, edges_of_handlers, keeps_others_out, owes_nothing, traffic
from ray_rl_debug.analyze.waits_streams import stream_edges
from ray_rl_debug.analyze.waits_terminals import terminal_edges
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Process, Socket

_WAITS_OUTSIDE = frozenset({Kind.SOCKET, Kind.FILE, Kind.CHANNEL, Kind.MP_QUEUE, Kind.CHILD, Kind.DATALOADER, Kind.LOOP_IDLE}) | THREAD_WAITS
"""Where a thread may wait for another process, or for a thread of its own that does; a loop may rest beside threads of its pool."""


def system_edges(view: View) -> Iterator[Edge]:
    """All edges of this kind."""
    found: list[Edge] = []
    for one in view.like_parts(lambda shape: shape.stands_in(_WAITS_OUTSIDE)):
        thread = waiting_thread(one)
        edges = _edges_of_thread(view, one, thread) if thread is not None else ()
        found += (msgspec.structs.replace(e, among=_THREADS) for e in edges) if pool_fellows(one) else edges
        found += _inside_edges(view, one)
    yield from found
    yield from onward_edges(view, found)
    yield from broker_edges(view)


def onward_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """From programs without a stack to whom they wait for in turn: only of those for whom somebody waits."""
    done: set[str] = set()
    pending = [e.target for e in known]
    while pending:
        key = pending.pop()
        if key in done or key not in view.seen or waiting_thread(view.seen[key]) is not None:
            continue
        done.add(key)
        edges = [*_edges_without_stack(view, view.seen[key])]
        pending += [e.target for e in edges]
        yield from edges


def _edges_of_thread(view: View, one: Seen, thread: SeenThread) -> Iterator[Edge]:
    """What one thread waits for outside of its process: another end, a child."""
    kind = thread.place.kind
    if kind is Kind.SOCKET:
        yield from _socket_edges(view, one, thread, socket_owners(view))
    if kind in (Kind.FILE, Kind.CHANNEL):
        yield from (*holder_edges(view, one, thread), *stream_edges(view, one, thread))
    if kind is Kind.FILE:
        yield from terminal_edges(view, one, thread)
        yield from news_edges(view, one, thread.kernel)
        yield from pipe_edges(view, one, thread.kernel)
    feeder = fetching_feeder(one) if kind is Kind.MP_QUEUE else None
    if feeder is not None and feeder is not thread and pool_rests(view, one):
        for edge in _edges_of_thread(view, one, feeder):
            evidence = f"the thread of its pool that hands out work {describe_place(feeder.place)}: {edge.evidence}"
            yield msgspec.structs.replace(edge, evidence=evidence)
        return
    if kind is Kind.MP_QUEUE:
        paired = list(_pair_edges(view, one, thread))
        yield from paired
        if any(e.target in view.seen for e in paired):
            return
    of_pool = kind is Kind.FUTURE and has_process_pool(one) and not takes_results(thread)
    if kind in (Kind.CHILD, Kind.DATALOADER, Kind.MP_QUEUE) or of_pool or (kind is Kind.EVENT and only_pool_may_set(view, one, thread)):
        yield from child_edges(view, one, thread)


def _edges_without_stack(view: View, one: Seen) -> Iterator[Edge]:
    """Of a program that is no Python: the system call of its only thread tells for what it waits, as for a shell, ``sort`` or ``tail``."""
    if one.process.samples or len(one.process.threads) != 1 or one.process.kind not in _PROGRAMS or one.has_ended:
        return
    kernel = told_by_files(one.process.threads[0], one.process.files or ())
    yield from news_edges(view, one, kernel)
    yield from pipe_edges(view, one, kernel)
    # calls were told by their numbers alone before descriptors were
    if kernel_call(kernel) in _POLLS and kernel is not None and kernel.waits_on_fds is None and kernel.call is not None:
        yield to_unseen(one, f"what pid {one.process.pid} polls")
    if kernel_call(kernel) == "wait":
        if kernel.run_slices == 0 and is_unseen_child(view, one, kernel.syscall_arg0):  # who waits has a child, and it is none that began meanwhile
            yield to_unseen(one, f"a child of pid {one.process.pid}")
        for key in view.below.get((one.node.name, one.process.pid), ()):
            child = view.seen[key]
            if not child.has_ended:
                evidence = f"waits for its child pid {child.process.pid}: {child.at()}"
                yield Edge(source=one.key, target=key, why=Why.CHILD, evidence=evidence, certainty=Certainty.LIKELY, among=_CHILDREN)


_PROGRAMS = ("child", "named", "ray-worker")
"""A worker of Ray may be started through a shell."""
_CHILDREN = "its children"
_THREADS = "its threads"


def _inside_edges(view: View, one: Seen) -> Iterator[Edge]:
    """Of a process whose thread waits for one of several others: to those that these wait for, any of whom may so end its wait."""
    for thread in helpers_of(one):
        said = f"its thread {thread.called} {describe_place(thread.place)}"
        for edge in _edges_of_thread(view, one, thread):
            yield msgspec.structs.replace(edge, among=_THREADS, evidence=f"{said}: {edge.evidence}")


_CONNECTIONS = "its connections"
_ACCEPT = "who may accept"
_BLOCKED = frozenset({"recv", "send", "read", "connect", "write"})
_POLLS = frozenset({"epoll", "poll", "select"})
"""How libraries wait at connections that their own threads read."""


def _socket_edges(view: View, one: Seen, thread: SeenThread, owners: Owners) -> Iterator[Edge]:
    kernel = thread.kernel
    if thread.listens:
        port = kernel.syscall_arg0 if kernel is not None else None
        fds = {s.fd for s in one.process.sockets or ()}
        serves = any(s.state == "ESTABLISHED" for s in one.process.sockets or ())
        if serves and port is not None and port not in fds and None not in fds:
            yield to_unseen(one, f"a connection to the port at descriptor {port}")
        yield from edges_of_handlers(view, one, owners)
        return
    if kernel is not None and kernel.wchan == CONNECTIONS:
        for each in kernel.waits_on_fds or ():
            for edge in descriptor_edges(view, one, each, owners, Certainty.LIKELY, "one of those it waits for"):
                yield msgspec.structs.replace(edge, among=edge.among or _CONNECTIONS)
        return
    is_blocked, fd = kernel_call(kernel) in _BLOCKED, descriptor(kernel)
    if fd is None and kernel is not None and kernel_call(kernel) in _POLLS and len(kernel.waits_on_fds or ()) == 1:
        fd = next((s.fd for s in one.process.sockets or () if s.fd in (kernel.waits_on_fds or ())), None)  # a wait with a time limit
    if fd is not None:
        yield from descriptor_edges(view, one, fd, owners, Certainty.PROVEN, "blocked in this socket")
        return
    if one.process.sockets is None and not view.by_hand:
        yield to_unseen(one, "the other end of its connection")
    candidates = [
        s
        for s in one.process.sockets or ()
        if s.family.startswith("tcp") and s.state in ("ESTABLISHED", "SYN_SENT", "CLOSE_WAIT") and not is_rays(view, one, s, owners)
    ]
    polls = not candidates and one.process.sockets is not None and kernel_call(kernel) in _POLLS
    if polls or (is_blocked and len(candidates) > 1):  # in which of them was not read
        yield to_unseen(one, "the other end of its connection")
    if len(candidates) == 1:
        # in which call it is, the kernel would have told
        sure = Certainty.POSSIBLE if kernel is None and kernel_was_read(view) else Certainty.LIKELY
        if sure is Certainty.POSSIBLE and is_served(one, candidates[0]):
            yield to_unseen(one, "the other end of its connection")  # it may as well listen
            return
        yield from _edge_to_peer(view, one, candidates[0], owners, sure, "its only connection")


def descriptor_edges(view: View, one: Seen, fd: int, owners: Owners, certainty: Certainty, reason: str, *, writes: bool = False) -> Iterator[Edge]:
    """The edge to the other end of one of a process's descriptors; none when that is no client's connection, or data flows.

    A server that `writes` an answer waits for its client to read it. What a descriptor is may not have been read: then nobody knows who is there.
    """
    socket = next((s for s in one.process.sockets or () if s.fd == fd), None)
    if socket is None:
        if not any(f.fd == fd for f in one.process.files or ()):
            yield to_unseen(one, f"the other end of descriptor {fd}")
    elif socket.state != "LISTEN":
        yield from _edge_to_peer(view, one, socket, owners, certainty, reason, writes=writes)


def _edge_to_peer(
    view: View, one: Seen, socket: Socket, owners: Owners, certainty: Certainty, reason: str, *, writes: bool = False
) -> Iterator[Edge]:
    if _flows(one, socket):
        return
    if socket.family.startswith("udp"):
        yield from datagram_edges(view, one, socket)
        return
    if not writes and not is_served(one, socket) and (lacks_listener(one) or lacks_own_listener(one, socket)):
        yield to_unseen(one, f"the other end of descriptor {socket.fd}")
        return
    if is_served(one, socket) and not writes and not keeps_others_out(view, one, socket):
        if lacks_other_end(socket) or lacks_client(view, one, socket):
            yield to_unseen(one, f"the other end of descriptor {socket.fd}")
        yield from edge_to_silent_client(view, one, socket, owners)
        yield from edge_to_only_client(view, one, socket, owners)
        return
    if socket.queued_at is not None:
        yield from _edges_to_listeners(view, one, socket, certainty)
        return
    if socket.family == "unix" and socket.peer_inode is not None:
        yield from _edge_to_unix_peer(view, one, socket, certainty, reason)
        return
    if socket.family == "unix" or socket.remote is None:
        yield to_unseen(one, f"the other end of descriptor {socket.fd}")
        return
    node = one.node.name
    local, remote = endpoint_key(node, socket.local), endpoint_key(node, socket.remote)
    # the connection itself, else (accepted by nobody yet) the process that listens there
    served = view.once(listeners).get(remote[1], [])
    taken = owners.get((remote, local)) or accepted_by(served, socket)
    ends = taken or waited_at(served, remote[1])
    if served and not ends:  # it may have been accepted since its sockets were read; or somebody who was not seen did that
        ends, certainty = served, Certainty.POSSIBLE
    ends = [(k, p) for k, p in ends if k != one.process_key] or ends
    text = f"TCP {socket.local} → {socket.remote} ({socket.state}), {reason}{traffic(socket)}"
    accept = [] if taken else [(key, p) for key, p in may_accept(ends, remote[1]) if _may_come_to_accept(view, key, p)]
    for key, process in accept if len(accept) > 1 else ():
        said = f"{text}: nobody has accepted it, and pid {process.pid} may"
        yield Edge(source=one.key, target=key, why=Why.SOCKET, evidence=said, certainty=certainty, among=_ACCEPT)
    if len(accept) > 1:
        return
    ends = accept or ends
    if are_copies(ends, remote[1]):
        yield to_unseen(one, f"the other end of descriptor {socket.fd}")
        return
    if not ends:
        yield Edge(source=one.key, target=node_of(NodeKind.ADDRESS, socket.remote), why=Why.SOCKET, evidence=text, certainty=certainty)
        return
    key, process = ends[0]
    if process.kind not in RAY_PROCESSES and not owes_nothing(view, one, socket, key):
        yield Edge(source=one.key, target=key, why=Why.SOCKET, evidence=text, certainty=certainty)


def _may_come_to_accept(view: View, key: str, process: Process) -> bool:
    """Not a worker that was forked with a copy of the socket and waits for its own next task."""
    return process.kind not in RAY_PROCESSES and not (key in view.seen and waits_for_work(view.seen[key]))


def _flows(one: Seen, socket: Socket) -> bool:
    """Did data come in during the window? Then the other end works on the answer, and nobody is waited for."""
    return socket.quiet_s is not None and one.process.window_s is not None and socket.quiet_s < one.process.window_s


def _edge_to_unix_peer(view: View, one: Seen, socket: Socket, certainty: Certainty, reason: str) -> Iterator[Edge]:
    """A socket pair may be held by parent and child alike: its other end is then the one that is not ours."""
    for other in view:
        same_node = other.node is one.node and other.key != one.process_key
        if same_node and any(s.inode == socket.peer_inode for s in other.process.sockets or ()) and other.process.kind not in RAY_PROCESSES:
            text = f"Unix socket {socket.remote or 'pair'}, {reason}"
            yield Edge(source=one.key, target=other.key, why=Why.SOCKET, evidence=text, certainty=certainty)
            return
    if not any(s.inode == socket.peer_inode for s in one.process.sockets or ()):
        yield to_unseen(one, f"the other end of Unix socket {socket.inode}")


def _edges_to_listeners(view: View, one: Seen, socket: Socket, certainty: Certainty) -> Iterator[Edge]:
    """From a client that waits in the queue of a Unix socket to whoever listens there."""
    holders = [o for o in view if o.node is one.node and any(s.inode == socket.queued_at for s in o.process.sockets or ())]
    for holder in holders:
        text = f"Unix socket {socket.remote}: nobody has accepted this connection"
        yield Edge(source=one.key, target=holder.key, why=Why.SOCKET, evidence=text, certainty=certainty)
    if not holders:
        yield to_unseen(one, f"the other end of Unix socket {socket.inode}")


def _pair_edges(view: View, one: Seen, thread: SeenThread) -> Iterator[Edge]:
    """A connection of multiprocessing leads to whoever holds its other end, child or not."""
    fd = descriptor(thread.kernel) if kernel_call(thread.kernel) in ("read", "recv") else None
    if fd is None:
        return
    for edge in descriptor_edges(view, one, fd, socket_owners(view), Certainty.PROVEN, "blocked in this connection"):
        # one whose parent was not read has most likely been started by who talks to it so
        is_child = edge.target in view.seen and view.seen[edge.target].process.ppid in (one.process.pid, None)
        yield msgspec.structs.replace(edge, why=Why.CHILD_QUEUE) if is_child else edge
