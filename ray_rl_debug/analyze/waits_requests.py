"""Edges of servers that are at rest: whoever waits for their end waits in truth for those who send them requests.

Nobody owes a server its next request. But one that has no request in hand keeps nobody either, and how long it lives is up to its clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.connections import clients, is_served, socket_owners
from ray_rl_debug.analyze.coroutines import SERVES_RANK, is_write, rank
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kernel_calls import descriptor, kernel_call
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS
from ray_rl_debug.analyze.known_edges import edges_of
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Certainty

_ANSWERS = (Why.SOCKET, Why.AWAITED_SOCKET)


def request_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """From servers that read at their clients, and for whose answer nobody waits, to these clients; `known` are the edges found so far."""
    sources = {e.source for e in known}
    asked = {e.target for e in edges_of(known, *_ANSWERS) if e.source in view.seen and view.seen[e.source].motion is not Motion.MOVING}
    awaited = {e.target for e in known}
    found: list[Edge] = []
    while True:  # a server may itself be the client of one
        candidates = awaited - sources - asked
        new = [one for key in sorted(candidates) if (one := view.seen.get(key)) is not None and one.lane_of is None and _is_at_rest(one)]
        more = [e for one in new for e in _to_clients(view, one)]
        if not more:
            break
        sources |= {one.key for one in new}
        awaited |= {e.target for e in more}
        found += more
    yield from found


_READS = frozenset({"recv", "read"})


def _is_at_rest(one: Seen) -> bool:
    """Has no thread and no coroutine of a server a request in hand: does each read at a connection?"""
    told = one.telling
    is_elsewhere = told is not None and told.place.path and told.place.kind not in IDLE_KINDS and kernel_call(told.kernel) not in _READS
    if is_elsewhere or not any(s.state == "LISTEN" for s in one.process.sockets or ()):
        return False
    own = [t for t in one.threads if t.place.path and t.place.kind not in IDLE_KINDS]
    ends = [e for e in one.ends if rank(e) < SERVES_RANK]
    reads = all(kernel_call(t.kernel) in _READS and _is_of_client(one, descriptor(t.kernel)) for t in own)
    return bool(own or ends) and reads and all(e.awaited.kind == "socket" and not is_write(e.awaited) for e in ends)


def _is_of_client(one: Seen, fd: int | None) -> bool:
    return any(s.fd == fd and s.state != "LISTEN" and is_served(one, s) and not s.rx_queue_bytes for s in one.process.sockets or ())


def _to_clients(view: View, one: Seen) -> Iterator[Edge]:
    for socket in one.process.sockets or ():
        for key, _ in clients(view, one, socket, socket_owners(view)) if socket.state != "LISTEN" and is_served(one, socket) else ():
            evidence = f"it has no request in hand and reads at its clients; {view.seen[key].identity.label} may send the next"
            yield Edge(source=one.key, target=key, why=Why.MESSAGE, evidence=evidence, certainty=Certainty.LIKELY)
