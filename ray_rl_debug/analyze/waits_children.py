"""Edges from processes to their children: the end of a child, what a child should put into a queue, and work of a DataLoader's worker."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.data_loaders import runs_loader_worker
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kernel_calls import descriptor, kernel_call
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, Kind
from ray_rl_debug.analyze.lost_ends import lacks_child, sees_all_below
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.pauses import kernel_was_read
from ray_rl_debug.analyze.pools import ends_in_vain, may_work_for, taker
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import OpenFile, Thread

ITSELF = ("child ", "a child ", "what ")
"""What is not seen begins so where it may act itself, and is not something that somebody holds;"""
INSIDE = ("what thread ", "what the threads ", "what the coroutines ")
"""and so where it is a part of a process that was seen."""


def child_edges(view: View, one: Seen, thread: SeenThread | None) -> Iterator[Edge]:
    if one.motion is Motion.MOVING and thread is not None and thread.place.kind in (Kind.DATALOADER, Kind.MP_QUEUE):
        return  # its children deliver
    children = [c for c in view.children(one) if c.process.state not in ("Z", "X")]
    kernel = thread.kernel if thread else None
    named = _named(view, one, kernel, children)
    children = named or [c for c in children if not is_tracker(c)]
    is_guess = False
    if thread is not None and thread.place.kind is Kind.MP_QUEUE:
        of_pool = taker(one)
        is_guess = kernel is None or _lacks_pipe(one, kernel, children) or (of_pool is not None and _lacks_pipe(one, of_pool, children))
        children = _writers(view, one, kernel, children)
        children = _of_pool(view, one, children)
    if thread is not None and thread.place.kind is Kind.DATALOADER:
        children = _loaders(children)
    printed = _read_pipe(one, kernel) if thread is not None and thread.place.kind is Kind.CHILD else None
    if printed is not None and all(c.process.files is not None for c in children):
        holders = writers_of(view, one, printed)
        if not any(other in children for other in holders):
            yield from _to_holders(one, printed, holders)
            return
        children = [c for c in children if c in holders]
    if not named and kernel is not None and kernel_call(kernel) == "wait" and is_unseen_child(view, one, kernel.syscall_arg0):
        number = kernel.syscall_arg0
        yield to_unseen(one, f"child {number}" if number is not None and number > 0 else f"a child of pid {one.process.pid}")
        return
    working = [c for c in children if not waits_for_work(c) or c.motion is Motion.MOVING]
    lacks_one = lacks_child(view, one, ended=sum(c.has_ended for c in view.children(one)))
    if not working and thread is not None and thread.place.kind is Kind.MP_QUEUE:
        # no child has the work that is waited for: it died with one
        for child in (c for c in view.children(one) if c.has_ended):
            evidence = f"its child pid {child.process.pid} has ended and left a zombie"
            yield Edge(source=one.key, target=child.key, why=Why.CHILD_QUEUE, evidence=evidence, certainty=Certainty.LIKELY)
        lacks_only = lacks_one and all(map(is_tracker, view.children(one)))
        unseen = lacks_only or has_orphans(view, one) or (one.process.child_count is not None and not sees_all_below(view, one))
        if unseen and not ends_in_vain(one):  # else the unseen ones only take the places of others that brought nothing
            yield to_unseen_child(one, Why.CHILD_QUEUE)
        return
    if not working and thread is not None and thread.place.kind is Kind.FUTURE:
        if living_workers(one) == 0:
            return
        yield to_unseen_child(one, Why.CHILD_QUEUE)  # a pool tells of workers that died: one that was not seen may have the work
    # each end is told at a descriptor of its own, and the first wakes it
    at_descriptors = len(named) > 1 and kernel is not None and bool(kernel.waits_on_fds)
    why = {Kind.CHILD: Why.CHILD, Kind.DATALOADER: Why.DATALOADER}.get(thread.place.kind if thread else Kind.CHILD, Why.CHILD_QUEUE)
    if not named and (has_orphans(view, one) or (why is not Why.CHILD and lacks_one)):
        yield to_unseen_child(one, why)
    for child in working or ([] if thread is not None and thread.place.kind is Kind.FUTURE else children):
        evidence = f"waits for its child pid {child.process.pid}: {child.at()}"
        sure = Certainty.PROVEN if why is Why.CHILD and len(children) == 1 else Certainty.LIKELY
        if kernel_was_read(view) and ((is_guess and len(children) > 1) or (why is Why.CHILD and _is_untold(kernel))):
            sure = Certainty.POSSIBLE  # which of them it is, or one that began meanwhile, the kernel would have told
        yield Edge(source=one.key, target=child.key, why=why, evidence=evidence, certainty=sure, among=_ENDS if at_descriptors else "")


_ENDS = "ends of processes"


def _loaders(children: list[Seen]) -> list[Seen]:
    """Those that load batches, where any of them is seen to; one without a stack may."""
    found = [c for c in children if any(runs_loader_worker(t.frames) for t in c.threads)]
    return [c for c in children if c in found or not c.threads] if found else children


def _is_untold(kernel: Thread | None) -> bool:
    """Does the kernel not tell for the end of which child a thread waits? One that waits for any child says so with a number, too."""
    return kernel is None or (kernel_call(kernel) == "wait" and kernel.syscall_arg0 is None and not kernel.waits_on_fds)


def _lacks_pipe(one: Seen, kernel: Thread, children: list[Seen]) -> bool:
    """Is the pipe unknown that a thread reads, or whether a child holds its other end?"""
    if kernel_call(kernel) != "read":
        return False
    fd = descriptor(kernel)
    is_known = any(f.fd == fd and f.inode is not None for f in one.process.files or ()) or any(s.fd == fd for s in one.process.sockets or ())
    return not is_known or any(c.process.files is None for c in children)


def _named(view: View, one: Seen, kernel: Thread | None, children: list[Seen]) -> list[Seen]:
    """The child whose end it waits for, as the kernel tells it; only a parent may wait so, whether or not its child says whose it is."""
    if kernel is None or kernel_call(kernel) != "wait":
        return []
    awaited = {f.of_pid for f in one.process.files or () if f.kind == "pidfd" and f.fd in (kernel.waits_on_fds or ())}
    if awaited:
        return [c for c in children if c.process.pid in awaited]
    if kernel.syscall_arg0 is None:
        return []
    named = [c for c in children if c.process.pid == kernel.syscall_arg0 or c.process.ppid == kernel.syscall_arg0]
    adopted = view.by_node_pid.get((one.node.name, kernel.syscall_arg0))
    if not named and adopted is not None and view.seen[adopted].process.state not in ("Z", "X"):
        return [view.seen[adopted]]
    return named


def is_unseen_child(view: View, one: Seen, pid: int | None) -> bool:
    """Is the child unknown whose end the kernel says it waits for? Numbers that are no pids say which children count, not which one."""
    below = view.below.get((one.node.name, one.process.pid), ())
    is_pid = pid is not None and _LARGEST_ID_TYPE < pid <= _LARGEST_PID
    return not below or (is_pid and all(view.seen[key].process.pid != pid for key in below))


_LARGEST_ID_TYPE = 3
"""``waitid`` is first told which sort of number follows; ``wait4`` is told the pid itself, or -1 for any child."""
_LARGEST_PID = 1 << 22
"""What Linux allows."""


def is_tracker(child: Seen) -> bool:
    """multiprocessing's own helper, which works for nobody and for whose end nobody waits."""
    return any(f.file.endswith("multiprocessing/resource_tracker.py") for t in child.threads for f in t.frames)


def has_orphans(view: View, one: Seen) -> bool:
    """Is some process on its machine a child whose parent was not read or not seen? Then a child of its own may be missing too."""
    return view.once(_orphans).get(one.node.name, 0) > 0


def _orphans(view: View) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in view:
        if one.process.kind == "child" and (one.node.name, one.process.ppid) not in view.by_node_pid:
            found[one.node.name] = found.get(one.node.name, 0) + 1
    return found


def _of_pool(view: View, one: Seen, children: list[Seen]) -> list[Seen]:
    """Of the children of one that waits for a pool those that may put a result where it takes them; all where that was not read.

    Where no child does, a fork server that was not read may stand between. Who runs in a pool may be of this one: a row of it may be missing.
    """
    pipe = _read_pipe(one, taker(one))
    if pipe is None or any(c.process.files is None for c in children):
        return children
    writers = [c for c in children if _writes_to(c, pipe)]
    # where all of these rest, of another worker the row may be missing that tells of the pipe
    others = [c for c in children if c not in writers and may_work_for(one, c)] if all(map(waits_for_work, writers)) else []
    return [*writers, *others] or writers_of(view, one, pipe)


def pool_rests(view: View, one: Seen) -> bool:
    """Does a process wait for a pool none of whose workers has anything to do?"""
    workers = _of_pool(view, one, [c for c in view.children(one) if not c.has_ended and not is_tracker(c)])
    return bool(workers) and all(waits_for_work(c) and c.motion is not Motion.MOVING for c in workers)


def _writers(view: View, one: Seen, kernel: Thread | None, children: list[Seen]) -> list[Seen]:
    """Of the children those that could write into the pipe that is read; all where that was not read, or where it may be somebody else."""
    if kernel is None or kernel_call(kernel) != "read" or any(not c.process.files for c in children):
        return children
    pipe = next((f.inode for f in one.process.files or () if f.fd == descriptor(kernel) and f.kind == "pipe"), None)
    if pipe is None:
        return children
    writers = [c for c in children if any(f.inode in (pipe, None) and f.kind == "pipe" and f.writable is not False for f in c.process.files or ())]
    has_dead = any(c.has_ended for c in view.children(one))
    if writers and not has_dead and all(waits_for_work(w) for w in writers):
        return [*writers, *(c for c in children if c.threads and c not in writers)]  # whoever works may hold it too: a row may be missing
    return writers if writers or has_dead else children


def _read_pipe(one: Seen, kernel: Thread | None) -> OpenFile | None:
    """The pipe that its thread reads, as one does who reads what a program prints."""
    if kernel is None or kernel_call(kernel) != "read":
        return None
    return next((f for f in one.process.files or () if f.fd == descriptor(kernel) and f.kind == "pipe" and f.inode is not None), None)


def writers_of(view: View, one: Seen, pipe: OpenFile) -> list[Seen]:
    """Who holds, or may hold, the writing end of a pipe that a process reads."""
    return [other for other in view if other.node is one.node and other.key != one.process_key and _writes_to(other, pipe)]


def _writes_to(other: Seen, pipe: OpenFile) -> bool:
    return any(f.kind == "pipe" and f.inode in (pipe.inode, None) and f.writable is not False for f in other.process.files or ())


def _to_holders(one: Seen, pipe: OpenFile, holders: list[Seen]) -> Iterator[Edge]:
    """No child of its own holds what it reads: whoever was left behind does, and the end comes when that one closes it."""
    if not holders:
        yield to_unseen(one, f"the other end of {pipe.path}")
    for holder in holders:
        evidence = f"reads {pipe.path} to its end; no child of it holds the other end any more, pid {holder.process.pid} does"
        yield Edge(source=one.key, target=holder.key, why=Why.PIPE, evidence=evidence, certainty=Certainty.LIKELY)


def has_process_pool(one: Seen) -> bool:
    """Does a thread of it hand work to processes of ``concurrent.futures``? Then the future that it waits for may be theirs. Not a worker."""
    return any(f.file.endswith("concurrent/futures/process.py") and f.function != "_process_worker" for t in one.threads for f in t.frames)


def takes_results(thread: SeenThread) -> bool:
    """Is it the thread that takes the results of such a pool? It runs the callbacks of futures too, and while one waits, no result arrives."""
    return any(f.file.endswith("concurrent/futures/process.py") and f.function in _TAKERS for f in thread.frames)


def polls_results(thread: SeenThread) -> bool:
    """Is it that thread, at rest until the next result comes?"""
    return takes_results(thread) and any(f.function in _POLLED for f in thread.frames)


def only_pool_may_set(view: View, one: Seen, thread: SeenThread) -> bool:
    """Is the thread that takes a pool's results the only one that may set its event, as a callback of a future does, and has the pool work?"""
    beside = [t for t in one.threads if t is not thread]
    return any(polls_results(t) for t in beside) and not any(t.place.path for t in beside) and not pool_rests(view, one)


_TAKERS = frozenset({"_ExecutorManagerThread.run", "_queue_management_worker"})
_POLLED = frozenset({"_ExecutorManagerThread.wait_result_broken_or_wakeup", "_queue_management_worker"})
_OWN_ENDS = 2
"""That thread polls the pipe of the results and one that wakes it; each further descriptor tells the end of one worker."""


def living_workers(one: Seen) -> int | None:
    """How many workers the one pool of a process has, as the descriptors tell at which the taker of its results waits; None: not known."""
    takers = [t for t in one.threads if takes_results(t)]
    kernel = takers[0].kernel if len(takers) == 1 else None
    if kernel is None or kernel.waits_on_fds is None or not polls_results(takers[0]):
        return None
    return len(kernel.waits_on_fds) - _OWN_ENDS if len(kernel.waits_on_fds) >= _OWN_ENDS else None


def waits_for_work(child: Seen) -> bool:
    """Is a child at its queue, with nothing to do? The queue of an engine is filled by a thread of it that reads what its parent sends."""
    place = child.place
    if place is None:
        return False
    if place.kind in IDLE_KINDS:
        return True
    if place.kind is Kind.QUEUE:
        return any(t is not child.telling and t.place.path and t.place.kind is Kind.MP_QUEUE for t in child.threads)
    own = {f.rsplit(".", 1)[-1] for t in child.threads for f in (fr.function for fr in t.frames)}
    return place.kind is Kind.MP_QUEUE and bool(own & {"_worker_loop", "worker", "_resource_tracker"})


def to_unseen(one: Seen, what: str, why: Why = Why.PIPE) -> Edge:
    target = node_of(NodeKind.UNSEEN, f"{one.node.name}/{what}")
    evidence = f"{what} was not seen" if what.startswith(ITSELF) else f"who holds {what} was not seen"
    return Edge(source=one.key, target=target, why=why, evidence=evidence, certainty=Certainty.PROVEN)


def to_unseen_child(one: Seen, why: Why) -> Edge:
    return to_unseen(one, f"what a child of pid {one.process.pid} should deliver", why)
