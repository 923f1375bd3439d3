"""Edges at pipes and FIFOs: a reader waits for those who hold the writing end, a writer for those who read."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kernel_calls import descriptor, kernel_call
from ray_rl_debug.analyze.lost_ends import lacks_child, lacks_reader, sees_all_below
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import OpenFile, Thread


def pipe_edges(view: View, one: Seen, kernel: Thread | None) -> Iterator[Edge]:
    """A reader of a pipe or FIFO waits for those who hold its writing end, a writer for those who read."""
    call = kernel_call(kernel)
    if kernel is None or call not in ("read", "write"):
        return
    fd = descriptor(kernel)
    held = next((f for f in one.process.files or () if f.fd == fd), None) if fd is not None else None
    if held is None or (held.kind in ("pipe", "fifo") and held.inode is None):
        if _may_be_pipe(one, kernel):
            which = f"descriptor {fd}" if fd is not None else "a descriptor that was not read"
            yield to_unseen(one, f"the other end of {which}")
        return
    if held.kind not in ("pipe", "fifo"):
        return
    holders = [
        (other, f.writable)
        for other in view
        if other.node is one.node and other.key != one.process_key
        for f in other.process.files or ()
        if f.kind == held.kind and (f.inode == held.inode or (f.kind == "pipe" and f.path == held.path))
    ]
    ends = list({other.key: other for other, writable in holders if writable is (call == "read")}.values())
    family = [*view.children(one), *_relatives(view, one)]
    unread = any(s.process.state is None or (s.process.files is None and not s.has_ended) for s in family)
    if any(writable is None for _, writable in holders) or unread:
        yield to_unseen(one, f"the other end of {held.path}")
    what = "writes to" if call == "read" else "reads from"
    orphan = one.process.kind == "child" and (one.node.name, one.process.ppid) not in view.by_node_pid
    if len(ends) == 1 and not orphan:
        yield Edge(source=one.key, target=ends[0].key, why=Why.PIPE, evidence=f"only this process {what} {held.path}", certainty=Certainty.LIKELY)
        return
    own = any(f.kind == held.kind and f.inode == held.inode and f.writable is (call == "read") for f in one.process.files or ())
    if not ends and not own and (held.kind == "pipe" or call == "write"):
        yield to_unseen(one, f"the other end of {held.path}")  # a call blocks only while somebody holds it
    # children that were forked later hold copies of it; whose it was nobody can tell any more if one of them has died
    dead = [c for c in view.children(one) if c.has_ended] if ends or _keeps_open(one, held, kernel) else []
    if own and not ends and _lacks_end(view, one, held, kernel, dead):
        yield to_unseen(one, f"the other end of {held.path}")
    if ends and orphan:
        yield _to_unseen_parent(one, held.path)
    for end in [*ends, *dead]:
        evidence = f"one of {len(ends)} processes that hold the other end of {held.path}"
        if end in dead and not ends:
            evidence = f"its child pid {end.process.pid} has ended; only the reader still holds the other end of {held.path}, so no end of file comes"
        elif end in dead:
            evidence = f"its child pid {end.process.pid} has ended; who is left holds copies of {held.path}"
        yield Edge(source=one.key, target=end.key, why=Why.PIPE, evidence=evidence, certainty=Certainty.LIKELY)


def _lacks_end(view: View, one: Seen, held: OpenFile, kernel: Thread, dead: list[Seen]) -> bool:
    """Of a pipe of which a process itself has both ends: may another end of it be with somebody who was not seen?"""
    if dead:
        return lacks_child(view, one, ended=len(dead))
    if kernel_call(kernel) == "write":  # who writes mostly has somebody who reads
        return not sees_all_below(view, one)
    return _keeps_open(one, held, kernel) and lacks_reader(view, one)


def _keeps_open(one: Seen, held: OpenFile, kernel: Thread) -> bool:
    """Does it read a pipe of which it holds the writing end, too, with no other thread that might write? Then somebody else wrote there."""
    own = any(f.kind == held.kind and f.inode == held.inode and f.writable for f in one.process.files or ())
    return own and kernel_call(kernel) == "read" and not any(t.tid != kernel.tid and t.place.path and not t.is_apart for t in one.threads)


def _relatives(view: View, one: Seen) -> list[Seen]:
    """Its parent and siblings: whoever may have inherited an end of a pipe of its parent's."""
    if one.process.ppid is None or one.process.kind != "child":
        return []
    found = (view.by_node_pid.get((one.node.name, one.process.ppid)), *view.below.get((one.node.name, one.process.ppid), ()))
    return [view.seen[key] for key in found if key is not None and key != one.key]


def _may_be_pipe(one: Seen, kernel: Thread) -> bool:
    """Of a descriptor that was not read: does the kernel's side allow that it is a pipe? One of a socket is told elsewhere."""
    is_socket = any(s.fd == descriptor(kernel) for s in one.process.sockets or () if s.fd is not None)
    return not is_socket and (kernel.wchan is None or "pipe" in kernel.wchan or "fifo" in kernel.wchan)


def _to_unseen_parent(one: Seen, path: str) -> Edge:
    target = node_of(NodeKind.UNSEEN, f"{one.node.name}/the other end of {path}")
    evidence = f"its parent pid {one.process.ppid} may hold the other end of {path}, and was not seen"
    return Edge(source=one.key, target=target, why=Why.PIPE, evidence=evidence, certainty=Certainty.LIKELY)
