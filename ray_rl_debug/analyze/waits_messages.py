"""Edges of programs that send each other messages by ZeroMQ: threads of the library read and write the connections, and hand on what comes.

Which of its sockets a program waits at no stack tells, and a coroutine there waits for a future like any other. So it waits for any of those at the
other ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from ray_rl_debug.analyze.connections import endpoint_key, socket_owners
from ray_rl_debug.analyze.coroutines import SERVES_RANK, rank
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.shapes import has_coroutines
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Socket

MESSENGER = "ZMQbg/IO"
"""How the library calls these threads in the kernel."""
_OF_LIBRARY = "ZMQbg/"
"""And all of its own."""
_FRAMES = "zmq/sugar/"
_AMONG = "ends of its messages"
_ENDS = "the other ends of messages"


def message_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """From whoever waits for a message to those who may send it; parts of engines, of whom it is known who asks whom, are left out.

    A round in which all wait is at rest, unless somebody from outside waits for it: `known` are the edges found so far.
    """
    found = {one.key: edges for one, reason in _receivers(view) if (edges := _to_ends(view, one, reason))}
    asked, left = set[str](), [*(e.target for e in known if e.target in found), *(key for key in found if _begins(view, view.seen[key]))]
    while left:
        if (key := left.pop()) not in asked:
            asked.add(key)
            left += (e.target for e in found[key] if e.target in found)
    for key, edges in found.items():
        yield from edges
        if key not in asked:
            one = view.seen[key]
            yield msgspec.structs.replace(to_unseen(one, f"{_ENDS} of pid {one.process.pid}", Why.MESSAGE), among=_AMONG)


def _begins(view: View, one: Seen) -> bool:
    """Is it a program that nobody seen has started, and whom nobody can ask? Then the run is what waits there."""
    is_first = (one.node.name, one.process.ppid) not in view.by_node_pid
    return is_first and one.kind is Kind.CHANNEL and one.process.sockets is not None and not any(s.state == "LISTEN" for s in one.process.sockets)


def _receivers(view: View) -> Iterator[tuple[Seen, str]]:
    """Who waits for a message, and how a sentence says so."""
    for one in view.at(Kind.CHANNEL):
        thread = one.followed or one.telling
        if one.identity.part is None and thread is not None and _is_at_library(thread) and _messengers(one):
            yield one, "it waits for a message"
    for one in view.like_parts(has_coroutines):
        if one.identity.part is None and (handed := _handed(one)) is not None and _messengers(one):
            yield one, f"a coroutine waits at {handed}, and messages may end that"


def _is_at_library(thread: SeenThread) -> bool:
    """Does it stand in the library, or in what it calls of it in C, such as a proxy?"""
    return thread.place.own == 0 or any(f.file.startswith(_FRAMES) for f in thread.frames[:3])


def _messengers(one: Seen) -> int:
    """How many threads of the library it has that read its connections: at least one where any of the library is there."""
    rests = sum(count for name, count in (one.process.idle_threads or {}).items() if name.startswith(MESSENGER))
    found = rests + sum(t.comm.startswith(MESSENGER) for t in one.process.threads)
    return found or int(any(t.comm.startswith(_OF_LIBRARY) for t in one.process.threads))


def _handed(one: Seen) -> str | None:
    """Where a coroutine stands still at a future, of which nobody tells who has it."""
    return next((e.at for e in one.ends if e.awaited.kind == "future" and rank(e) < SERVES_RANK and e.may_be_still), None)


def _to_ends(view: View, one: Seen, reason: str) -> list[Edge]:
    threads = [t for t in one.process.threads if t.comm.startswith(MESSENGER) and t.waits_on_fds is not None]
    fds = {fd for t in threads for fd in t.waits_on_fds or ()}
    unseen = msgspec.structs.replace(to_unseen(one, f"{_ENDS} of pid {one.process.pid}", Why.MESSAGE), among=_AMONG)
    if len(threads) < _messengers(one):
        return [unseen]
    sockets = [s for s in one.process.sockets or () if s.fd in fds and s.state != "LISTEN"]
    ends = {key: socket for socket in sockets for key in _others(view, one, socket)}
    edges = [unseen] if not sockets or not all(_others(view, one, socket) for socket in sockets) else []
    for key, socket in ends.items():
        evidence = f"{reason}: pid {view.seen[key].process.pid} is at the other end of {socket.family} {socket.local or socket.remote or socket.fd}"
        edges.append(Edge(source=one.key, target=key, why=Why.MESSAGE, evidence=evidence, certainty=Certainty.LIKELY, among=_AMONG))
    return edges


def _others(view: View, one: Seen, socket: Socket) -> list[str]:
    """Who was seen at the other end of a connection."""
    node = one.node.name
    if socket.family == "unix":
        keys = view.once(_unix_ends).get((node, socket.peer_inode), []) if socket.peer_inode is not None else []
    else:
        ends = (endpoint_key(node, socket.remote), endpoint_key(node, socket.local)) if socket.remote else None
        keys = [key for key, _ in socket_owners(view).get(ends, ())] if ends is not None else []
    return [key for key in keys if key != one.process_key and key in view.seen]


def _unix_ends(view: View) -> dict[tuple[str, int], list[str]]:
    """Who has a Unix socket, by its number on its machine."""
    found: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for one in view:
        for socket in one.process.sockets or ():
            if socket.family == "unix" and socket.inode is not None:
                found[(one.node.name, socket.inode)].append(one.key)
    return found
