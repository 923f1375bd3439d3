"""Edges between processes that share pipes, pairs of sockets and semaphores: workers between two tasks, and locks of multiprocessing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

from ray_rl_debug.analyze.connections import socket_owners
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kernel_calls import descriptor, kernel_call
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.launchers import is_launcher
from ray_rl_debug.analyze.lost_ends import lacks_child
from ray_rl_debug.analyze.pauses import kernel_was_read
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import is_tracker, to_unseen, waits_for_work
from ray_rl_debug.analyze.waits_system import descriptor_edges
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Frame, Node, OpenFile, SharedSemaphore, Thread

MEETING = "barrier"
"""How a wait is called that ends when all parties have come."""
_FED = frozenset({Why.COLLECTIVE, Why.P2P, Why.CHILD, Why.CHILD_QUEUE, Why.SOCKET, Why.GIVERS, Why.DATALOADER, Why.MESSAGE})
"""Waits for a process that may be a worker between two tasks."""


def fed_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """From workers between two tasks, for whom somebody waits, to those who could give them the next: they are no culprits themselves."""
    asked = {e.target for e in known if e.why in _FED and e.target in view.seen}
    # of workers that take from one queue in turns, one holds its lock while it waits there
    asked |= {e.target for e in known if e.why is Why.SEMAPHORE and e.source in asked and view.seen[e.source].is_idle and e.target in view.seen}
    hand_on = {e.source for e in known if e.why is Why.CHILD_QUEUE}  # who rests while its own workers are at work has had its task
    waiting = {e.source for e in known}
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
    if kernel is None or kernel_call(kernel) not in ("read", "recv"):
        return
    fd = descriptor(kernel)
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
    """Does it alone hold the other end of the pipe that it reads, as who inherited both may? Then nobody is left who writes."""
    read = next((h for h in one.process.files or () if h.fd == fd and h.kind == "pipe" and h.inode is not None), None)
    if read is None or any(other.process.files is None and not other.has_ended for other in view if other.node is one.node):
        return False
    held = [other for other in view if other.node is one.node and any(_is_end(h, read) for h in other.process.files or ())]
    return held == [one]


def _is_end(held: OpenFile, read: OpenFile) -> bool:
    return held.kind == "pipe" and held.inode in (read.inode, None) and held is not read and held.writable is not False


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


def semaphore_edges(view: View) -> Iterator[Edge]:
    """From processes that wait for a lock or semaphore between processes to those who have taken it, or have died with it."""
    for node in view.snapshot.nodes:
        for semaphore in node.semaphores:
            if semaphore.value:
                continue
            for pid in sorted({pid for pid, _ in semaphore.waiters}):
                key = view.by_node_pid.get((node.name, pid))
                if key is not None:
                    yield from _to_holders(view, node, view.seen[key], semaphore)
    known = {(node.name, pid) for node in view.snapshot.nodes for semaphore in node.semaphores for pid, _ in semaphore.waiters}
    for one in view:
        if _is_at_semaphore(one) and not one.is_idle and (one.node.name, one.process.pid) not in known:
            yield to_unseen(one, "a lock of multiprocessing", Why.SEMAPHORE)


def _is_at_semaphore(one: Seen) -> bool:
    """Does the thread that counts take a lock or semaphore of multiprocessing, by its innermost frame?"""
    return one.telling is not None and one.telling.stack.once(_takes_semaphore) and one.motion is Motion.FROZEN


def _takes_semaphore(frames: tuple[Frame, ...]) -> bool:
    if not frames:
        return False
    return frames[0].file.endswith("multiprocessing/synchronize.py") or bool(_OF_C & set(frames[0].calls or ()))


def _is_at_condition(frames: tuple[Frame, ...]) -> bool:
    """Is it at an event, a condition or a barrier of multiprocessing? Who has taken that semaphore was woken, and keeps nothing."""
    return any(f.function == "Condition.wait" and f.file.endswith("multiprocessing/synchronize.py") for f in frames[:_NEAR])


def _is_at_barrier(frames: tuple[Frame, ...]) -> bool:
    """Does it wait at a barrier of Python's?"""
    return any(f.function == "Barrier.wait" and f.file == "threading.py" for f in frames)


_NEAR = 3
"""Frames of that module between a wait and who called it, at most."""
_OF_C = frozenset({"sem_wait", "sem_timedwait", "sem_clockwait"})
"""Functions of the C library, as programs call them that share a semaphore with others by its name."""


def _ended_fellows(view: View, one: Seen) -> list[Seen]:
    """Children of its parent, or its own, that have ended and left a zombie: what they used, nobody can read any more."""
    return [s for s in view if s.node is one.node and s.process.ppid in (one.process.ppid, one.process.pid) and s.has_ended]


def _to_holders(view: View, node: Node, one: Seen, semaphore: SharedSemaphore) -> Iterator[Edge]:
    what = "lock" if semaphore.maximum == 1 else "semaphore"
    if _has_it_itself(one, semaphore):
        return  # nobody else could end this wait
    uses = [(use, key) for use in semaphore.uses if (key := view.by_node_pid.get((node.name, use.pid))) is not None and key != one.key]
    is_given = semaphore.maximum != 1 and one.telling is not None and one.telling.stack.once(_is_at_condition)
    unseen = [use for use in semaphore.uses if use.taken and (node.name, use.pid) not in view.by_node_pid]
    if unseen and not one.is_idle:  # who has taken what others give does not keep it, and may be the next to give
        yield to_unseen(one, f"the {what} of multiprocessing", Why.GIVERS if is_given else Why.SEMAPHORE)
    # some only take and others only give: room in a queue, or items of it
    givers = [(use, key) for use, key in uses if use.taken < 0]
    gives = bool(givers) or any(use.pid == one.process.pid and use.taken < 0 for use in semaphore.uses)
    at_it = {pid for pid, _ in semaphore.waiters}
    awake = [(use, key) for use, key in givers if use.pid not in at_it]
    if gives and not awake:  # a barrier: each party waits there and wakes the others
        yield from _to_absent(view, node, one, semaphore, what)
        return
    met = any(use.taken < 0 and use.pid in at_it for use in semaphore.uses)
    at_barrier = not semaphore.unread and one.telling is not None and one.telling.stack.once(_is_at_barrier)
    meets = met or (at_barrier and all(use.pid in at_it or use.taken < 0 for use, _ in uses))
    for use, key in awake:
        evidence = f"pid {use.pid} gives back the {what} of multiprocessing that others take: {-use.taken} times so far"
        yield Edge(source=one.key, target=key, why=Why.GIVERS, op=MEETING if meets else "", evidence=evidence, certainty=Certainty.LIKELY)
    if awake:
        return
    if _is_given_back(semaphore):
        yield from _to_unread_givers(view, node, one, semaphore, what)
        return
    taken = [(use, key) for use, key in uses if use.taken > 0 and not is_given]
    is_taken = any(use.taken > 0 for use in semaphore.uses) and not is_given
    for use, key in taken:
        evidence = f"pid {use.pid} has taken the {what} of multiprocessing and not given it back"
        sure = Certainty.PROVEN if semaphore.maximum == 1 and not semaphore.unread else Certainty.LIKELY
        yield Edge(source=one.key, target=key, why=Why.SEMAPHORE, evidence=evidence, certainty=sure)
    # who only takes a semaphore, and does not wait until it is given, finds it taken by somebody
    may_give = _others_at(view, node, one, semaphore) if one.kind is not Kind.LOCK else []
    if may_give and not is_taken:
        if (is_given and _lacks_use(view, one, semaphore)) or any(lacks_child(view, other) for other in may_give):
            yield to_unseen(one, f"the {what} of multiprocessing", Why.GIVERS)
        for other in may_give:
            evidence = (
                f"nobody {'keeps' if is_given else 'has taken'} the {what} of multiprocessing; pid {other.process.pid} has it too, and may give it"
            )
            yield Edge(source=one.key, target=other.key, why=Why.GIVERS, evidence=evidence, certainty=Certainty.LIKELY)
        return
    if semaphore.unread or is_taken:
        unread = [view.by_node_pid.get((node.name, pid)) for pid in semaphore.unread]
        if semaphore.maximum is None and unread and None not in unread and not one.is_idle:
            for key in unread:
                if key is not None and key != one.key:
                    evidence = f"who has taken the {what} of multiprocessing was not read; {view.seen[key].name} may use it too"
                    yield Edge(source=one.key, target=key, why=Why.GIVERS, evidence=evidence, certainty=Certainty.POSSIBLE)
            return
        if not one.is_idle and not taken:
            yield to_unseen(one, f"the {what} of multiprocessing", Why.SEMAPHORE)
        return
    family = _ended_fellows(view, one)
    if not family and _went_with_its_holder(view, node, one, semaphore):
        return  # nobody is left who could end this wait
    if not family and not one.is_idle:  # a worker between two tasks is at the lock of its queue by design
        yield to_unseen(one, f"the {what} of multiprocessing", Why.SEMAPHORE)
    for dead in family:
        evidence = f"nobody who lives has the {what} of multiprocessing; pid {dead.process.pid} has ended"
        yield Edge(source=one.key, target=dead.key, why=Why.SEMAPHORE, evidence=evidence, certainty=Certainty.LIKELY)


def _to_absent(view: View, node: Node, one: Seen, semaphore: SharedSemaphore, what: str) -> Iterator[Edge]:
    """To those who have not come where all who gave it back so far wait themselves: users of it, else who has it open, else who has ended."""
    at_it = {pid for pid, _ in semaphore.waiters}
    keys = [view.by_node_pid.get((node.name, use.pid)) for use in semaphore.uses if use.pid not in at_it and use.pid != one.process.pid]
    users = [view.seen[key] for key in keys if key is not None]
    have_it = [s for s in _others_at(view, node, one, semaphore) if s.process.pid not in at_it]
    absent = users if keys else have_it or _ended_fellows(view, one)
    for other in absent:
        does = "has ended" if other.has_ended else "has used it and does not" if users else "has it too and does not"
        evidence = f"those who gave back the {what} of multiprocessing so far wait there themselves; pid {other.process.pid} {does}"
        yield Edge(source=one.key, target=other.key, why=Why.GIVERS, op=MEETING, evidence=evidence, certainty=Certainty.LIKELY)
    if not absent or None in keys or any(lacks_child(view, other) for other in absent):
        yield msgspec.structs.replace(to_unseen(one, f"the {what} of multiprocessing", Why.GIVERS), op=MEETING)


def lost_lock(view: View, one: Seen) -> bool:
    """Does it wait for a lock of multiprocessing that went with the process that had it?"""
    own = (s for s in one.node.semaphores if s.value == 0 and any(pid == one.process.pid for pid, _ in s.waiters))
    return any(_went_with_its_holder(view, one.node, one, s) for s in own)


def _went_with_its_holder(view: View, node: Node, one: Seen, semaphore: SharedSemaphore) -> bool:
    """Is a lock taken by none of those who have it, each of which was asked, while one of them was started in the place of another?

    It has no name any more, so that only who inherits it can have it.
    """
    if one.is_idle or one.motion is not Motion.FROZEN or (node.name, one.process.ppid) not in view.by_node_pid:
        return False
    have_it = _have_in_vain(view, node, semaphore)
    started_s = [s.process.start_time_s for s in have_it if s.process.ppid == one.process.ppid and s.process.start_time_s is not None]
    return bool(started_s) and max(started_s) - min(started_s) > STARTED_TOGETHER_S


def _have_in_vain(view: View, node: Node, semaphore: SharedSemaphore) -> list[Seen]:
    """Those who have a lock that is taken, where each was asked and none has taken it; nobody else can have it, as it has no name any more."""
    if semaphore.maximum != 1 or semaphore.unread or any(use.taken > 0 for use in semaphore.uses):
        return []
    on_node = [s for s in view if s.node is node and not s.has_ended]
    if any(s.process.files is None for s in on_node):
        return []
    files = {s.key: [f for f in s.process.files or () if f.inode == semaphore.inode and f.path.startswith(SEGMENT)] for s in on_node}
    have_it = [s for s in on_node if files[s.key]]
    return have_it if all(f.path.endswith(DELETED) for s in have_it for f in files[s.key]) else []


def lost_reader(view: View, one: Seen) -> bool:
    """Do all its workers wait at the lock of those who read their queue, and has none of them taken it? Then it went with one that was killed.

    Of readers that live one always has the lock, and the others wait for it. Whether one was not seen `lacks_child` tells.
    """
    workers = {c.process.pid: c for c in view.children(one) if not is_tracker(c)}
    for semaphore in one.node.semaphores if workers else ():
        at_it = {pid for pid, _ in semaphore.waiters}
        if semaphore.value != 0 or at_it != workers.keys() or any(c.motion is not Motion.FROZEN or not waits_for_work(c) for c in workers.values()):
            continue
        if _have_in_vain(view, one.node, semaphore):
            return True
    return False


DELETED = " (deleted)"
"""How the kernel marks a file that has no name any more."""
STARTED_TOGETHER_S = 0.5
"""Workers of a pool start one after the other, each within fractions of a second."""


def _lacks_use(view: View, one: Seen, semaphore: SharedSemaphore) -> bool:
    """Was what is waited for not given as often as taken, and was nobody of the family started in the place of another? Then a use was not read."""
    family = [s for s in view if s.node is one.node and s.process.ppid == one.process.ppid]
    started_s = [s.process.start_time_s for s in family if s.process.start_time_s is not None]
    return sum(use.taken for use in semaphore.uses) != 0 and max(started_s, default=0.0) - min(started_s, default=0.0) < STARTED_TOGETHER_S


def _is_given_back(semaphore: SharedSemaphore) -> bool:
    """Was it taken more often than it has permits? Then somebody else gives them back, as readers of a full queue do for those who fill it."""
    taken = sum(use.taken for use in semaphore.uses)
    return semaphore.maximum is not None and taken > semaphore.maximum - (semaphore.value or 0)


def _to_unread_givers(view: View, node: Node, one: Seen, semaphore: SharedSemaphore, what: str) -> Iterator[Edge]:
    """To those whose counts were not read: one of them gives what the others have taken, so that nobody holds it."""
    keys = [view.by_node_pid.get((node.name, pid)) for pid in semaphore.unread]
    if not keys or None in keys:
        yield to_unseen(one, f"the {what} of multiprocessing", Why.GIVERS)
    for key in keys:
        if key is not None and key != one.key:
            taken = sum(use.taken for use in semaphore.uses)
            evidence = f"the {what} of multiprocessing was taken {taken} times and has {semaphore.maximum} permits; this one may give it back"
            yield Edge(source=one.key, target=key, why=Why.GIVERS, evidence=evidence, certainty=Certainty.LIKELY)


def _has_it_itself(one: Seen, semaphore: SharedSemaphore) -> bool:
    """Does it wait for a lock that the same thread has taken already?"""
    own = {tid for pid, tid in semaphore.waiters if pid == one.process.pid}
    return semaphore.maximum == 1 and any(use.pid == one.process.pid and use.taken > 0 and use.tid in own for use in semaphore.uses)


def _others_at(view: View, node: Node, one: Seen, semaphore: SharedSemaphore) -> list[Seen]:
    """Who else has a semaphore that nobody has taken, as those have that wait at a barrier: any of them may give it.

    Empty where not all were seen that may have it: a process whose files were not read, or one whose parent is not here. A lock is no such
    semaphore: who finds it taken knows that somebody took it.
    """
    family = [s for s in view if s.node is one.node and not s.has_ended]
    unknown = any(s.process.files is None or (s.process.kind == "child" and (node.name, s.process.ppid) not in view.by_node_pid) for s in family)
    ended = any(s.has_ended for s in view if s.node is one.node)
    if semaphore.maximum == 1 or semaphore.unread or unknown or ended or one.is_idle:
        return []
    return [s for s in family if s is not one and any(f.inode == semaphore.inode and f.path.startswith(SEGMENT) for f in s.process.files or ())]


SEGMENT = "/dev/shm/sem."
"""Where the kernel keeps the semaphores of multiprocessing."""
