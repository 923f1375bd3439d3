"""Edges of those who pause and look again: to whoever could change what they look at, as the source of their loop tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, THREAD_WAITS, Kind
from ray_rl_debug.analyze.known_edges import all_waiters, edges_of
from ray_rl_debug.analyze.looks import is_fellow, looks_at, looks_at_variables, shared_with
from ray_rl_debug.analyze.lost_ends import lacks_child
from ray_rl_debug.analyze.nodes import NodeKind, kind_of, node_of_pid
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import has_orphans
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Frame

_FILES = frozenset("exists lexists is_file isfile is_dir isdir glob rglob iglob listdir scandir iterdir stat getmtime getsize".split())
"""Calls that look at files,"""
AT_ADDRESS = frozenset({"urlopen", "connect", "connect_ex", "create_connection", "getresponse"})
"""at whether somebody answers,"""
_PROCESSES = frozenset({"kill", "pid_exists", "is_running"})
"""and at processes by their number."""
_TRACKER = "multiprocessing/resource_tracker.py"
_SILENT = THREAD_WAITS - {Kind.LOCK}
"""Waits inside of a process."""

_OF_JOB = frozenset({"child", "named", "ray-worker", "driver"})


def look_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """`known` are the edges found so far; of those who were taken for pollers by their names alone nothing is added."""
    told = {e.source for e in edges_of(known, Why.POLL)}
    watching = {e.source for e in edges_of(known, Why.NEWS) if kind_of(e.target) is NodeKind.UNSEEN}
    looking = view.like(lambda shape: shape.stack is not None and shape.stack.once(_looks))
    watching_only = [view.seen[key] for key in sorted(watching.difference(one.key for one in looking)) if key in view.seen]
    for one in (*looking, *watching_only):
        if one.key in watching and not one.is_stopped:
            unread = any(o.node is one.node and o.process.files is None and not o.has_ended for o in view)  # one of them may hold the file
            yield from () if unread else _to_crashed(view, one, known)
            continue
        names = looks_at(one.telling) if one.telling is not None else None
        if names is None or one.motion is Motion.MOVING or one.is_stopped or one.key in told:
            continue
        if not names:
            yield from _to_sharers(view, one)
        elif _PROCESSES.intersection(names) and one.kind is Kind.SLEEP:
            yield from _to_keepers(view, one)
        elif one.kind is Kind.SLEEP and (_FILES | AT_ADDRESS).intersection(names):
            yield from (_to_makers(view, one, known) if _FILES.intersection(names) else ())
            yield from _to_crashed(view, one, known)


def _looks(frames: tuple[Frame, ...]) -> bool:
    """Is its innermost frame in a loop that looks again and again?"""
    return bool(frames) and frames[0].looks is not None


def _to_sharers(view: View, one: Seen) -> Iterator[Edge]:
    """Variables in shared memory: any one of those who share it may change what is looked at."""
    if not looks_at_variables(view, one):
        return
    # who waits for the end of others changes nothing, nor do those in the same loop
    unread = [o for o in view if o.node is one.node and o is not one and o.process.files is None and not o.has_ended and o.process.kind in _OF_JOB]
    sharing = [other for other in (*shared_with(view, one), *unread) if other.kind is not Kind.CHILD]
    for other in [s for s in sharing if not is_fellow(one, s)] or sharing:
        evidence = f"looks again and again at variables in {_at(one)}, and shares memory with {other.identity.label}, which {other.does()}"
        yield Edge(source=one.key, target=other.key, why=Why.POLL, evidence=evidence, certainty=Certainty.LIKELY)


def _to_keepers(view: View, one: Seen) -> Iterator[Edge]:
    """The end of a process: the number of one that has ended stays taken until its parent takes note."""
    living = [o for o in view if o.node is one.node and o is not one and not o.has_ended and o.process.kind in _OF_JOB]
    ended = [other for other in view if other.node is one.node and other.has_ended and other.process.ppid not in (None, one.process.pid)]
    for other in ended:
        pid = other.process.ppid or 0
        said = f"{other.identity.label} has ended, and its parent pid {pid} has not taken note of it"
        evidence = f"looks again and again for the end of a process; {said}"
        target = view.by_node_pid.get((one.node.name, pid), node_of_pid(one.node.name, pid))
        yield Edge(source=one.key, target=target, why=Why.POLL, evidence=evidence, certainty=Certainty.LIKELY)
    for other in living if ended else ():
        evidence = f"looks again and again for the end of a process; {other.identity.label} {other.does()}"
        yield Edge(source=one.key, target=other.key, why=Why.POLL, evidence=evidence, certainty=Certainty.LIKELY)


def _to_makers(view: View, one: Seen, known: Sequence[Edge]) -> Iterator[Edge]:
    """A file: any process of its family that does not wait for it may make or remove it."""
    behind = all_waiters(one.key, known)
    family = [o for o in view if o.node is one.node and o.key not in (one.key, *behind) and o.process.kind in _OF_JOB]
    makers = [o for o in family if not (o.is_idle or o.has_ended or o.kind is Kind.CHILD or (o.telling is not None and o.telling.listens))]
    makers = [o for o in makers if not is_fellow(one, o)]
    if any(o.kind in _SILENT or not o.threads for o in makers) or has_orphans(view, one):
        return  # one that waits inside of itself may rest there by design, and have nothing to do with the file; a parent may not have been seen
    for other in makers:
        evidence = f"looks again and again for a file in {_at(one)}; {other.identity.label}, which could make it, {other.does()}"
        yield Edge(source=one.key, target=other.key, why=Why.POLL, evidence=evidence, certainty=Certainty.LIKELY)


def _to_crashed(view: View, one: Seen, known: Sequence[Edge]) -> Iterator[Edge]:
    """What one that crashed should have made or answered, where nobody else is left who could: its parent has not even taken note of its end."""
    behind = all_waiters(one.key, [e for e in known if e.certainty is not Certainty.POSSIBLE])
    family = [o for o in view if o is not one and o.process.kind in _OF_JOB]
    crashed = [o for o in family if o.node is one.node and o.process.ppid in (one.process.pid, one.process.ppid)]
    crashed = [o for o in crashed if o.has_ended and o.process.exit_code]
    if not crashed or not any(not view.seen[key].is_idle for key in behind if key in view.seen):
        return
    others = [o for o in family if not o.has_ended and not is_fellow(one, o)]
    with_pipes = sum(not _began_before_tracker(view, o) for o in crashed)
    if any(_may_help(o, waits=o.key in behind) or lacks_child(view, o, ended=with_pipes) for o in others) or _has_helper(one):
        return
    for other in crashed:
        said = f"{other.identity.label} has ended with {other.process.exit_code}, nobody has taken note of it, and all others wait or rest"
        waits = "watches files that nobody holds open" if one.kind is not Kind.SLEEP else f"looks again and again in {_at(one)}"
        evidence = f"{waits} for what another process should bring; {said}"
        yield Edge(source=one.key, target=other.key, why=Why.POLL, evidence=evidence, certainty=Certainty.LIKELY)


def _began_before_tracker(view: View, one: Seen) -> bool:
    """Is it older than the tracker that its parent starts with its first process of multiprocessing? Then it is none, and no pipe was its own."""
    siblings = (view.seen.get(key) for key in view.below.get((one.node.name, one.process.ppid or 0), ()))
    trackers = (o for o in siblings if o is not None and any(f.file.endswith(_TRACKER) for t in o.threads for f in t.frames))
    starts = [o.process.start_time_s for o in trackers if o.process.start_time_s is not None and o.process.pid > one.process.pid]
    return any(one.process.start_time_s is not None and one.process.start_time_s <= start_s for start_s in starts)


def _may_help(one: Seen, waits: bool) -> bool:
    """Might it start anew who crashed, or do its work? Who rests does not, nor does who waits, but for another thread of it."""
    return _has_helper(one) if waits else not one.is_idle and one.kind is not Kind.CHILD


def _has_helper(one: Seen) -> bool:
    """Is one of its other threads in code of its own, where it waits for nobody?"""
    main = (one.telling, one.followed)
    return any(t not in main and t.place.path and t.place.kind not in IDLE_KINDS for t in one.threads)


def _at(one: Seen) -> str:
    return one.place.path[0][0] if one.place is not None and one.place.path else "a loop"
