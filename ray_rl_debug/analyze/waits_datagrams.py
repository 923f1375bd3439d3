"""Edges of those who read datagrams: to whoever has a socket from which one may come. Nobody is connected, and what is lost is lost."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.connections import RAY_PROCESSES, endpoint_key
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kernel_calls import descriptor, kernel_call
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Socket

_OF_MACHINE = ("127.", "[::1]")
"""Addresses to which only processes of the same machine send."""


def datagram_edges(view: View, one: Seen, socket: Socket) -> Iterator[Edge]:
    """From a reader at a UDP socket to those who may send to it, any one of whom is enough. Who reads in the same place itself sends none."""
    if socket.rx_queue_bytes:
        return
    senders = [o for o in view if o.key != one.process_key and o.process.kind not in RAY_PROCESSES and _may_send(view, o, one, socket)]
    is_local = socket.local.startswith(_OF_MACHINE)
    if not senders or not is_local:  # from outside of the machine anybody may send
        yield to_unseen(one, f"the other end of descriptor {socket.fd}", Why.MESSAGE if senders else Why.PIPE)
    for sender in senders:
        evidence = (
            f"reads datagrams at {socket.local}, and none is there; {sender.identity.label} has a socket from which one may come: it {sender.does()}"
        )
        yield Edge(source=one.key, target=sender.key, why=Why.MESSAGE, evidence=evidence, certainty=Certainty.LIKELY)


def _may_send(view: View, other: Seen, one: Seen, socket: Socket) -> bool:
    own = [s for s in other.process.sockets or () if s.family.startswith("udp")]
    if socket.remote is not None:
        node = one.node.name
        return any(endpoint_key(other.node.name, s.local) == endpoint_key(node, socket.remote) for s in own)
    if other.node is not one.node or not own:
        return False
    thread, mine = other.followed or other.telling, one.followed or one.telling
    reads = thread is not None and kernel_call(thread.kernel) == "recv" and descriptor(thread.kernel) in {s.fd for s in own}
    return not (reads and thread is not None and mine is not None and thread.place.path == mine.place.path)
