"""Edges at locks, semaphores and barriers that processes share: to those who have taken them, who give them, or who died with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.lost_ends import lacks_child
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import is_tracker, to_unseen, waits_for_work
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Frame, Node, SemaphoreUse, SharedSemaphore

MEETING = "barrier"
"""How a wait is called that ends when all parties have come."""


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
    for one in view.like(lambda shape: shape.stack is not None and shape.stack.once(_takes_semaphore)):
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


def _what(semaphore: SharedSemaphore) -> str:
    return "lock" if semaphore.maximum == 1 else "semaphore"


def _to_holders(view: View, node: Node, one: Seen, semaphore: SharedSemaphore) -> Iterator[Edge]:
    if _has_it_itself(one, semaphore):
        return  # nobody else could end this wait
    what = _what(semaphore)
    uses = [(use, key) for use in semaphore.uses if (key := view.by_node_pid.get((node.name, use.pid))) is not None and key != one.key]
    is_given = semaphore.maximum != 1 and one.telling is not None and one.telling.stack.once(_is_at_condition)
    unseen = [use for use in semaphore.uses if use.taken and (node.name, use.pid) not in view.by_node_pid]
    if unseen and not one.is_idle:  # who has taken what others give does not keep it, and may be the next to give
        yield to_unseen(one, f"the {what} of multiprocessing", Why.GIVERS if is_given else Why.SEMAPHORE)
    # some only take and others only give: room in a queue, or items of it
    givers = [(use, key) for use, key in uses if use.taken < 0]
    if givers or any(use.pid == one.process.pid and use.taken < 0 for use in semaphore.uses):
        yield from _to_givers(view, node, one, semaphore, uses)
    elif _is_given_back(semaphore):
        yield from _to_unread_givers(view, node, one, semaphore)
    else:
        taken = [] if is_given else [(use, key) for use, key in uses if use.taken > 0]
        yield from _to_takers(one, semaphore, taken)
        is_taken = any(use.taken > 0 for use in semaphore.uses) and not is_given
        # who only takes a semaphore, and does not wait until it is given, finds it taken by somebody
        may_give = _others_at(view, node, one, semaphore) if (is_given or one.kind is not Kind.LOCK) and not is_taken else []
        if may_give:
            yield from _to_those_who_may_give(view, one, semaphore, may_give, is_given=is_given)
        elif semaphore.unread or is_taken:
            yield from _to_unread_takers(view, node, one, semaphore, is_taken_by_known=bool(taken))
        else:
            yield from _to_the_ended(view, node, one, semaphore)


def _to_givers(view: View, node: Node, one: Seen, semaphore: SharedSemaphore, uses: Sequence[tuple[SemaphoreUse, str]]) -> Iterator[Edge]:
    """To those who give back what others take; where all of them wait there themselves it is a barrier, and whoever has not come is missing."""
    what = _what(semaphore)
    at_it = {pid for pid, _ in semaphore.waiters}
    awake = [(use, key) for use, key in uses if use.taken < 0 and use.pid not in at_it]
    if not awake:  # each party waits there and wakes the others
        yield from _to_absent(view, node, one, semaphore)
        return
    met = any(use.taken < 0 and use.pid in at_it for use in semaphore.uses)
    at_barrier = not semaphore.unread and one.telling is not None and one.telling.stack.once(_is_at_barrier)
    meets = met or (at_barrier and all(use.pid in at_it or use.taken < 0 for use, _ in uses))
    for use, key in awake:
        evidence = f"pid {use.pid} gives back the {what} of multiprocessing that others take: {-use.taken} times so far"
        yield Edge(source=one.key, target=key, why=Why.GIVERS, op=MEETING if meets else "", evidence=evidence, certainty=Certainty.LIKELY)


def _to_takers(one: Seen, semaphore: SharedSemaphore, taken: Sequence[tuple[SemaphoreUse, str]]) -> Iterator[Edge]:
    what = _what(semaphore)
    sure = Certainty.PROVEN if semaphore.maximum == 1 and not semaphore.unread else Certainty.LIKELY
    for use, key in taken:
        evidence = f"pid {use.pid} has taken the {what} of multiprocessing and not given it back"
        yield Edge(source=one.key, target=key, why=Why.SEMAPHORE, evidence=evidence, certainty=sure)


def _to_those_who_may_give(view: View, one: Seen, semaphore: SharedSemaphore, others: Sequence[Seen], *, is_given: bool) -> Iterator[Edge]:
    """To all who have a semaphore that nobody has taken."""
    parent = view.seen.get(view.by_node_pid.get((one.node.name, one.process.ppid or 0), ""))
    family = [*others, parent] if parent is not None else others
    unread = (is_given and _lacks_use(view, one, semaphore)) or _lacks_row(view, one, semaphore)
    if unread or any(lacks_child(view, other) for other in family):
        yield to_unseen(one, "the semaphore of multiprocessing", Why.GIVERS)
    at_it = {pid for pid, _ in semaphore.waiters}
    absent = [o for o in others if o.process.pid not in at_it]
    at_barrier = not semaphore.uses and one.telling is not None and one.telling.stack.once(_is_at_barrier)
    op = MEETING if absent and at_barrier else ""
    sure = Certainty.POSSIBLE if op and len(absent) > 1 else Certainty.LIKELY  # which of them is a party was not read
    others = absent or others  # who waits there itself gives nothing
    nobody = "nobody keeps" if is_given else "nobody has taken"
    for other in others:
        evidence = f"{nobody} the semaphore of multiprocessing; pid {other.process.pid} has it too, and may give it"
        yield Edge(source=one.key, target=other.key, why=Why.GIVERS, op=op, evidence=evidence, certainty=sure)


def _to_unread_takers(view: View, node: Node, one: Seen, semaphore: SharedSemaphore, *, is_taken_by_known: bool) -> Iterator[Edge]:
    """To those of whom was not read whether they have taken it, where they are all that may; else to somebody unseen."""
    what = _what(semaphore)
    unread = [view.by_node_pid.get((node.name, pid)) for pid in semaphore.unread]
    if semaphore.maximum is None and unread and None not in unread and not one.is_idle:
        for key in unread:
            if key is not None and key != one.key:
                evidence = f"who has taken the {what} of multiprocessing was not read; {view.seen[key].name} may use it too"
                yield Edge(source=one.key, target=key, why=Why.GIVERS, evidence=evidence, certainty=Certainty.POSSIBLE)
    elif not one.is_idle and not is_taken_by_known:
        yield to_unseen(one, f"the {what} of multiprocessing", Why.SEMAPHORE)


def _to_the_ended(view: View, node: Node, one: Seen, semaphore: SharedSemaphore) -> Iterator[Edge]:
    """To fellows that have ended, as nobody who lives has it."""
    what = _what(semaphore)
    family = _ended_fellows(view, one)
    if not family and _went_with_its_holder(view, node, one, semaphore):
        return  # nobody is left who could end this wait
    if not family and not one.is_idle:  # a worker between two tasks is at the lock of its queue by design
        yield to_unseen(one, f"the {what} of multiprocessing", Why.SEMAPHORE)
    for dead in family:
        evidence = f"nobody who lives has the {what} of multiprocessing; pid {dead.process.pid} has ended"
        yield Edge(source=one.key, target=dead.key, why=Why.SEMAPHORE, evidence=evidence, certainty=Certainty.LIKELY)


def _to_absent(view: View, node: Node, one: Seen, semaphore: SharedSemaphore) -> Iterator[Edge]:
    """To those who have not come where all who gave it back so far wait themselves: users of it, else who has it open, else who has ended."""
    what = _what(semaphore)
    at_it = {pid for pid, _ in semaphore.waiters}
    keys = [view.by_node_pid.get((node.name, use.pid)) for use in semaphore.uses if use.pid not in at_it and use.pid != one.process.pid]
    users = [view.seen[key] for key in keys if key is not None]
    have_it = [s for s in _others_at(view, node, one, semaphore) if s.process.pid not in at_it]
    absent = users if keys else have_it or _ended_fellows(view, one)
    for other in absent:
        does = "has ended" if other.has_ended else "has used it and does not" if users else "has it too and does not"
        evidence = f"those who gave back the {what} of multiprocessing so far wait there themselves; pid {other.process.pid} {does}"
        yield Edge(source=one.key, target=other.key, why=Why.GIVERS, op=MEETING, evidence=evidence, certainty=Certainty.LIKELY)
    unread = not users and _lacks_row(view, one, semaphore)
    if not absent or None in keys or unread or any(lacks_child(view, other) for other in absent):
        yield msgspec.structs.replace(to_unseen(one, f"the {what} of multiprocessing", Why.GIVERS), op=MEETING)


def _lacks_row(view: View, one: Seen, semaphore: SharedSemaphore) -> bool:
    """Does a fellow or its parent have all other semaphores that it has, and this one not? They came with one start; of it a row was not read."""
    own = _inodes(one) - {semaphore.inode}
    family = (s for s in view if s.node is one.node and s is not one and one.process.ppid in (s.process.ppid, s.process.pid))
    fellows = (s for s in family if not s.has_ended)
    return bool(own) and any(own <= (had := _inodes(s)) and semaphore.inode not in had for s in fellows)


def _inodes(one: Seen) -> set[int | None]:
    return {f.inode for f in one.process.files or () if f.path.startswith(SEGMENT)}


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


def _to_unread_givers(view: View, node: Node, one: Seen, semaphore: SharedSemaphore) -> Iterator[Edge]:
    """To those whose counts were not read: one of them gives what the others have taken, so that nobody holds it."""
    what = _what(semaphore)
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
    semaphore: who finds it taken knows that somebody took it. A parent that waits for the end of its children gives them nothing before.
    """
    family = [s for s in view if s.node is one.node and not s.has_ended]
    unknown = any(s.process.files is None or (s.process.kind == "child" and (node.name, s.process.ppid) not in view.by_node_pid) for s in family)
    ended = any(s.has_ended for s in view if s.node is one.node)
    if semaphore.maximum == 1 or semaphore.unread or unknown or ended or one.is_idle:
        return []
    have_it = [s for s in family if s is not one and semaphore.inode in _inodes(s)]
    return [s for s in have_it if s.kind is not Kind.CHILD or s.process.pid != one.process.ppid] or have_it


SEGMENT = "/dev/shm/sem."
"""Where the kernel keeps the semaphores of multiprocessing."""
