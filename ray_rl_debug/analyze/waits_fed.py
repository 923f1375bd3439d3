"""Edges of workers between two tasks: to those who could give them the next, by the pipes, pairs of sockets and connections that they share."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.connections import socket_owners
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kernel_calls import descriptor, kernel_call
from ray_rl_debug.analyze.known_edges import edges_of
from ray_rl_debug.analyze.launchers import is_launcher
from ray_rl_debug.analyze.pauses import kernel_was_read
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.analyze.waits_system import descriptor_edges
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import OpenFile, Thread

_FED = frozenset({Why.COLLECTIVE, Why.P2P, Why.CHILD, Why.CHILD_QUEUE, Why.SOCKET, Why.GIVERS, Why.DATALOADER, Why.MESSAGE, Why.PIPE})
"""Waits for a process that may be a worker between two tasks."""


_POLLS = frozenset({"poll", "select", "epoll"})


def fed_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """From workers between two tasks, for whom somebody waits, to those who could give them the next: they are no culprits themselves."""
    asked = {key for key in {e.target for e in edges_of(known, *_FED)} if key in view.seen and view.seen[key].is_idle}
    # of workers that take from one queue in turns, one holds its lock while it waits there
    asked |= {e.target for e in edges_of(known, Why.SEMAPHORE) if e.source in asked and e.target in view.seen}
    hand_on = {e.source for e in edges_of(known, Why.CHILD_QUEUE)}  # who rests while its own workers are at work has had its task
    waiting = {e.source for e in known} if asked else set[str]()
    pending, done = deque(sorted(asked)), set[str]()
    while pending:
        key = pending.popleft()
        one = view.seen[key]
        if key in done or not one.is_idle or one.process.kind != "child" or key in hand_on:
            continue
        done.add(key)
        edges = [*_to_feeders(view, one, waits=key in waiting)]
        yield from edges
        pending += [e.target for e in edges if e.why is Why.SOCKET and e.target in view.seen]


def _to_feeders(view: View, one: Seen, *, waits: bool) -> Iterator[Edge]:
    """From one worker to those who could give it its next task; `waits`: is it known for whom it waits otherwise?"""
    kernel = one.telling.kernel if one.telling is not None else None
    if one.telling is not None and one.telling.stack.once(is_launcher) and view.children(one):
        yield from _to_ranks(view, one)
        return
    at_lock = kernel is not None and kernel_call(kernel) == "futex" and kernel.wakes_in_s is None and not waits
    if (_is_elsewhere(one, kernel) or at_lock) and kernel_was_read(view):
        yield to_unseen(one, "what it waits for")
    waited = kernel.waits_on_fds or () if kernel is not None else ()
    polls = kernel_call(kernel) in _POLLS and len(waited) == 1  # a wait for the next task with a time limit
    if not polls and kernel_call(kernel) not in ("read", "recv"):
        return
    fd = waited[0] if polls else descriptor(kernel)
    if fd is not None and any(s.fd == fd and s.family.startswith("tcp") for s in one.process.sockets or ()):
        yield from descriptor_edges(view, one, fd, socket_owners(view), Certainty.LIKELY, "where it waits for a message")
        return
    feeders = _holders(view, one, fd)
    parent = [f for f in feeders if f.process.pid == one.process.ppid]
    held = {h.fd for h in one.process.files or ()} | {h.fd for h in one.process.sockets or ()}
    if (one.node.name, one.process.ppid) not in view.by_node_pid or fd not in held or not (feeders or _feeds_itself(view, one, fd)):
        yield to_unseen(one, f"the other end of descriptor {fd}")
    for feeder in parent or feeders:
        evidence = f"it waits for its next task; {feeder.name} holds the other end of descriptor {fd}"
        yield Edge(source=one.key, target=feeder.key, why=Why.PIPE, evidence=evidence, certainty=Certainty.LIKELY)


def _to_ranks(view: View, one: Seen) -> Iterator[Edge]:
    """From a launcher for whose end somebody waits to the ranks that it has started: it looks again and again whether one has ended."""
    for child in view.children(one):
        evidence = f"it waits for the end of its ranks; pid {child.process.pid} {child.does()}"
        yield Edge(source=one.key, target=child.key, why=Why.CHILD, evidence=evidence, certainty=Certainty.LIKELY, among=_RANKS)


_RANKS = "its ranks"


def _feeds_itself(view: View, one: Seen, fd: int | None) -> bool:
    """Does it alone hold the other end of the pipe that it reads, as who inherited both may? Then nobody is left who writes.

    Who made a queue has both ends of its pipe: a parent that holds one was not read to the end.
    """
    read = next((h for h in one.process.files or () if h.fd == fd and h.kind == "pipe" and h.inode is not None), None)
    if read is None or any(other.process.files is None and not other.has_ended for other in view if other.node is one.node):
        return False
    on_node = [other for other in view if other.node is one.node]
    held = [o for o in on_node if any(_is_end(h, read) and (h.writable is not False or _made_it(o, one)) for h in o.process.files or ())]
    return held == [one]


def _is_end(held: OpenFile, read: OpenFile) -> bool:
    return held.kind == "pipe" and held.inode in (read.inode, None) and held is not read


def _made_it(other: Seen, one: Seen) -> bool:
    return other.process.pid == one.process.ppid


def _is_elsewhere(one: Seen, kernel: Thread | None) -> bool:
    """Does the kernel not tell in which call a worker is, or in one that is no wait for a task?"""
    if one.is_stopped or one.has_ended:
        return False
    return kernel is None or (kernel.state == "S" and kernel.syscall is None and kernel.wchan is None) or kernel_call(kernel) == "sleep"


def _holders(view: View, one: Seen, fd: int | None) -> list[Seen]:
    """Who could write what a process reads from one of its pipes or pairs of sockets."""
    pipes = {f.inode for f in one.process.files or () if f.fd == fd and f.kind == "pipe" and f.inode is not None}
    pairs = {s.peer_inode for s in one.process.sockets or () if s.fd == fd and s.family == "unix" and s.peer_inode is not None}
    found = []
    for other in view:
        if other.node is not one.node or other is one:
            continue
        ends = [f.writable for f in other.process.files or () if f.inode in pipes and f.kind == "pipe"]
        is_fellow = other.is_idle and False in ends and other.process.ppid == one.process.ppid  # it takes its tasks from the same queue
        if (any(writable is not False for writable in ends) and not is_fellow) or any(s.inode in pairs for s in other.process.sockets or ()):
            found.append(other)
    return found
