"""What a server waits for that reads at its clients: for nobody, unless the clients read as well."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.acceptors import is_empty
from ray_rl_debug.analyze.connections import TICK_S, Owners, clients, endpoint_key, is_served, not_accepted, port_of
from ray_rl_debug.analyze.coroutines import is_write
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.handlers import handlers, waiting_thread
from ray_rl_debug.analyze.kernel_calls import descriptor, kernel_call
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Socket


def edge_to_silent_client(view: View, one: Seen, socket: Socket, owners: Owners) -> Iterator[Edge]:
    """A server between two requests waits for nobody. Where its client waits at the other end of this very connection, each waits for the other."""
    if socket.rx_queue_bytes:
        return
    for key, end in clients(view, one, socket, owners):
        if _reads_at(view.seen[key], end):
            evidence = f"{_named(socket)}: both ends wait for the other to send, and nothing is unread{traffic(socket)}"
            yield Edge(source=one.key, target=key, why=Why.MESSAGE, evidence=evidence, certainty=Certainty.LIKELY)


def edge_to_only_client(view: View, one: Seen, socket: Socket, owners: Owners) -> Iterator[Edge]:
    """The program that runs a job serves nobody: what it reads at its one accepted connection, a part of the job owes to it."""
    accepted = [s for s in one.process.sockets or () if is_served(one, s) and s.state == "ESTABLISHED"]
    if one.process.kind not in ("named", "driver") or socket.rx_queue_bytes or len(accepted) != 1:
        return
    for key, end in clients(view, one, socket, owners):
        if not _reads_at(view.seen[key], end):
            evidence = f"{_named(socket)}, the only connection that it has accepted{traffic(socket)}"
            yield Edge(source=one.key, target=key, why=Why.MESSAGE, evidence=evidence, certainty=Certainty.LIKELY)


def edges_of_handlers(view: View, one: Seen, owners: Owners) -> Iterator[Edge]:
    """A server that listens waits for nobody. Where each of its threads reads at a client that reads as well, no thread has a request in hand."""
    edges = []
    for thread in handlers(one):
        if thread.kernel is None and thread.place.kind is Kind.SOCKET and one.process.threads:
            yield to_unseen(one, f"the connection of {thread.called}")
        fd = descriptor(thread.kernel) if kernel_call(thread.kernel) in ("recv", "read") else None
        socket = next((s for s in one.process.sockets or () if s.fd == fd), None) if fd is not None else None
        to_client = list(edge_to_silent_client(view, one, socket, owners)) if socket is not None and is_served(one, socket) else []
        if fd is not None and socket is None and not any(f.fd == fd for f in one.process.files or ()):
            yield to_unseen(one, f"the other end of descriptor {fd}")
        if not to_client:
            return
        edges += to_client
    yield from edges


def owes_nothing(view: View, one: Seen, socket: Socket, key: str) -> bool:
    """Has a server answered, and reads again, while its client got a later message of a client of its own and passed nothing on?"""
    server = view.seen.get(key)
    ends = (s for s in server.process.sockets or () if s.local == socket.remote and s.remote == socket.local) if server is not None else ()
    end = next((s for s in ends if server is not None and is_served(server, s) and _reads_at(server, s)), None)
    if end is None or end.quiet_s is None or socket.quiet_s is None or end.quiet_s <= socket.quiet_s + TICK_S:
        return False  # the last word on this connection is the client's own
    others = (s for s in one.process.sockets or () if s.fd != socket.fd and s.state == "ESTABLISHED" and s.quiet_s is not None and is_served(one, s))
    return any((s.quiet_s or 0.0) + TICK_S < socket.quiet_s for s in others)


def keeps_others_out(view: View, one: Seen, socket: Socket) -> bool:
    """Does somebody else read at a connection to this server that it has not accepted? Then it takes one client after the other."""
    if socket.family == "unix":
        queues = {s.inode for s in one.process.sockets or () if s.state == "LISTEN" and s.local == socket.local} - {None}
        others = (other for other in view if other.node is one.node and other is not one)
        return any(s.queued_at in queues and _reads_at(other, s) for other in others for s in other.process.sockets or ())
    if is_empty(one.process, port_of(socket)):
        return False  # it has accepted all: an end of such a connection was not read
    for key, process in not_accepted(view).get((endpoint_key(one.node.name, socket.local), None), []):
        ends = [s for s in process.sockets or () if s.remote is not None and endpoint_key(one.node.name, s.remote)[1] == port_of(socket)]
        if key in view.seen and key != one.process_key and any(_reads_at(view.seen[key], s) for s in ends):
            return True
    return False


def traffic(socket: Socket) -> str:
    """What queues and clocks of a connection tell: who does not read, whether the network drops, since when nothing came."""
    told = []
    if socket.tx_queue_bytes and socket.retransmits:
        told.append(
            f"{socket.tx_queue_bytes} bytes sent without an answer, {socket.retransmits} retransmits: the network or the other host drops them"
        )
    elif socket.tx_queue_bytes:
        told.append(f"{socket.tx_queue_bytes} bytes wait to be sent: the other end does not read")
    if socket.rx_queue_bytes:
        told.append(f"{socket.rx_queue_bytes} received bytes are not read")
    if socket.quiet_s is not None and socket.quiet_s >= 1:
        told.append(f"nothing came in for {socket.quiet_s:.0f} s")
    return "".join(f", {t}" for t in told)


def _named(socket: Socket) -> str:
    return f"TCP {socket.local} → {socket.remote}" if socket.family.startswith("tcp") else f"Unix socket {socket.local}"


def _reads_at(one: Seen, socket: Socket) -> bool:
    """Does its thread that counts, or a coroutine of it, wait for data at this socket?"""
    thread = waiting_thread(one)
    kernel = thread.kernel if thread is not None else None
    if kernel_call(kernel) in ("recv", "read") and descriptor(kernel) == socket.fd and socket.fd is not None:
        return not socket.rx_queue_bytes
    return not socket.rx_queue_bytes and any(
        e.is_still and not e.is_at_rest and not is_write(e.awaited) and socket.fd in e.descriptors for e in one.ends
    )
