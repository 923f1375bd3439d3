"""Edges of servers of gRPC whose handler reads a stream of requests: to their clients, which send them."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.connections import clients, is_served, lacks_client, socket_owners
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.library_places import reads_requests
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.model.report import Certainty

_CLIENTS = "its clients"


def stream_edges(view: View, one: Seen, thread: SeenThread) -> Iterator[Edge]:
    """To all of its clients: which of them sends this stream the stack does not tell."""
    if not thread.stack.once(reads_requests):
        return
    found: set[str] = set()
    accepted = [s for s in one.process.sockets or () if s.state == "ESTABLISHED" and is_served(one, s)]
    for socket in accepted:
        found |= {key for key, _ in clients(view, one, socket, socket_owners(view))}
    if not found or any(lacks_client(view, one, s) for s in accepted):
        yield to_unseen(one, f"the other end of a stream of pid {one.process.pid}", Why.MESSAGE)
    for key in sorted(found):
        evidence = f"its thread {thread.called} reads the requests of a stream; {view.seen[key].name} has a connection to it"
        yield Edge(source=one.key, target=key, why=Why.MESSAGE, evidence=evidence, certainty=Certainty.LIKELY, among=_CLIENTS)
