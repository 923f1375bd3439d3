"""Edges from those that wait for the lock on a file to its holder, as the kernel's table of locks tells."""

from __future__ import annotations

from collections.abc import Iterator, Set

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.handlers import waiting_thread
from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RANKS, Kind
from ray_rl_debug.analyze.nodes import node_of_pid
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_builds import build_edges
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import MAX_FILES, FileLock, OpenFile


def file_lock_edges(view: View) -> Iterator[Edge]:
    """All edges of this kind."""
    yield from _lock_edges(view)
    own = list(_own_lock_edges(view))
    yield from own
    yield from _unknown_locks(view, {e.source for e in own})
    for one in (*view.at(Kind.SLEEP), *(view.at(Kind.FLOCK) if view.by_hand else ())):
        if one.motion is not Motion.MOVING:
            yield from _tried_lock_edges(view, one)
    for one in view.at(Kind.FLOCK):
        yield from build_edges(view, one)


def _lock_edges(view: View) -> Iterator[Edge]:
    for node in view.snapshot.nodes:
        for waiter in (lock for lock in node.locks if lock.waiting):
            holder = next((h for h in node.locks if h.lock == waiter.lock and not h.waiting), None)
            source = view.by_node_pid.get((node.name, waiter.pid))
            if holder is None or source is None:
                continue
            if heirs := _heirs(view, node.name, holder):
                for heir in heirs:
                    evidence = f"pid {holder.pid} took the {waiter.kind} lock{_path_of(view, source, waiter.inode)} and has closed the file; "
                    evidence += f"pid {heir.process.pid}, which it started, has it open still"
                    yield Edge(source=source, target=heir.key, why=Why.FILE_LOCK, op=waiter.kind.lower(), evidence=evidence, among=_HEIRS)
                continue
            if holder.pid == waiter.pid:
                continue
            target = view.by_node_pid.get((node.name, holder.pid), node_of_pid(node.name, holder.pid))
            path = _path_of(view, source, waiter.inode)
            yield Edge(
                source=source,
                target=target,
                why=Why.FILE_LOCK,
                op=waiter.kind.lower(),
                evidence=f"pid {holder.pid} holds the {waiter.kind} lock{path}",
                certainty=Certainty.POSSIBLE if _may_have_closed(view, target, holder) else Certainty.PROVEN,
            )


_HEIRS = "heirs of a lock"


def _heirs(view: View, node: str, lock: FileLock) -> list[Seen]:
    """Who inherited the open file of a lock from a process that took it and has closed the file: such a lock lasts until all have closed it.

    Who took it may have opened the file anew since, and wait for the lock itself.
    """
    key = view.by_node_pid.get((node, lock.pid))
    if lock.kind != "FLOCK" or key is None:
        return []
    waiting = {row.pid for row in view.seen[key].node.locks if row.lock == lock.lock and row.waiting}
    if not _is_read_without(view.seen[key], lock, opened_anew=lock.pid in waiting):
        return []
    below = [view.seen[k] for k in view.below.get((node, lock.pid), ())]
    return [one for one in below if one.process.pid not in waiting and any(_is_of(f, lock) for f in one.process.files or ())]


def _may_have_closed(view: View, key: str, lock: FileLock) -> bool:
    """Was the file of a lock not seen among those of the process that took it? Then another may have inherited it, as nobody does POSIX's locks."""
    one = view.seen.get(key)
    if one is None or lock.kind != "FLOCK" or one.has_ended or any(_is_of(f, lock) for f in one.process.files or ()):
        return False
    return any(o.process.files for o in view if o.node is one.node)


def _is_read_without(one: Seen, lock: FileLock, *, opened_anew: bool) -> bool:
    """Were all its files read, and is the one of the lock not among them, but for where it waits for the lock?"""
    files = [f for f in one.process.files or () if f.kind == "file"]
    count = sum(_is_of(f, lock) for f in files)
    return 0 < len(files) < MAX_FILES and count == opened_anew and all(f.inode is not None for f in files)


def _is_of(file: OpenFile, lock: FileLock) -> bool:
    return (file.device, file.inode) == (lock.device, lock.inode)


def _own_lock_edges(view: View) -> Iterator[Edge]:
    """At locks that belong to an open file and to no process: to those who have locked parts of the same file, any of whom may give way."""
    for one in view.at(Kind.FLOCK):
        thread = waiting_thread(one)
        kernel = thread.kernel if thread is not None else None
        if kernel is None or kernel_call(kernel) != "fcntl" or one.motion is Motion.MOVING:
            continue
        held = next((f for f in one.process.files or () if f.fd is not None and f.fd == kernel.syscall_arg0 and f.inode is not None), None)
        rows = [r for r in one.node.locks if held is not None and r.waiting and (r.device, r.inode) == (held.device, held.inode)]
        if held is None or not any(r.kind == _OF_OPEN_FILE for r in rows) or any(r.pid == one.process.pid for r in rows):
            continue
        for other in (o for o in view if o.node is one.node and o.process is not one.process):
            if any(f.is_locked and (f.device, f.inode) == (held.device, held.inode) for f in other.process.files or ()):
                evidence = f"pid {other.process.pid} has {held.path} open with a lock of its own"
                yield Edge(source=one.key, target=other.key, why=Why.FILE_LOCK, evidence=evidence, certainty=Certainty.LIKELY, among=_RANGES)


_OF_OPEN_FILE = "OFDLCK"
_RANGES = "locks of open files"
_LOCKS = frozenset({"flock", "fcntl"})


def _unknown_locks(view: View, known: Set[str]) -> Iterator[Edge]:
    """From those that the kernel holds up at a lock on a file to its holder, where the table of locks does not tell who that is."""
    held = {(node.name, lock.lock) for node in view.snapshot.nodes for lock in node.locks if not lock.waiting}
    told = {(node.name, lock.pid) for node in view.snapshot.nodes for lock in node.locks if lock.waiting and (node.name, lock.lock) in held}
    for one in view.like(lambda shape: shape.kind not in WAITS_FOR_RANKS and shape.motion is not Motion.MOVING):
        thread = waiting_thread(one)
        at_lock = thread is not None and kernel_call(thread.kernel) in _LOCKS
        if at_lock and (one.node.name, one.process.pid) not in told and one.key not in known:
            yield to_unseen(one, "the lock on a file", Why.FILE_LOCK)


def _tried_lock_edges(view: View, one: Seen) -> Iterator[Edge]:
    """Locks that are tried again and again between pauses: SQLite's busy handler, the filelock package. The kernel lists no waiter then.

    SQLite keeps the file open, and pauses inside a call other than ``sleep``. filelock closes the file after each try: which of the ``.lock`` files
    that others hold it means is not seen.
    """
    frames = one.telling.frames if one.telling else ()
    calls = frames[0].calls if frames else None
    tries = any("filelock/" in f.file and f.function.rsplit(".", 1)[-1] in ("acquire", "__enter__") for f in frames)
    files = one.process.files or () if calls is not None and "sleep" not in calls else ()
    own = {(f.device, f.inode) for f in files if f.kind == "file" and f.writable and f.inode is not None}
    held: dict[str, tuple[str, Certainty]] = {}
    for lock in one.node.locks:
        holder = view.by_node_pid.get((one.node.name, lock.pid))
        if holder is None or holder == one.key or lock.waiting or lock.access != "WRITE":
            continue
        path = next((f.path for f in view.seen[holder].process.files or () if f.inode == lock.inode), "")
        holds = f"pid {lock.pid} holds the {lock.kind} lock on {path or 'a file that it has open'}"
        if lock.kind == "POSIX" and (lock.device, lock.inode) in own:
            held[holder] = (f"{holds}, and it pauses between its attempts", Certainty.LIKELY)
        elif tries and lock.kind == "FLOCK" and path.endswith(".lock"):
            held[holder] = (f"it pauses between its attempts to lock a file that was not seen; {holds}", Certainty.POSSIBLE)
    for holder, (evidence, sure) in held.items():
        why = Why.FILE_LOCK if one.kind is Kind.FLOCK else Why.TRIED_LOCK
        yield Edge(source=one.key, target=holder, why=why, evidence=evidence, certainty=sure)


def _path_of(view: View, source: str, inode: int) -> str:
    found = next((f.path for f in view.seen[source].process.files or () if f.inode == inode), None)
    return f" on {found}" if found else ""
