"""Waits for a future that a program beside the process delivers: a thread of a library takes its answers, as torch's compiler has it.

Such a thread has no frame of the program and looks idle. The descriptor that it reads tells who writes the answers. That one rests at the descriptor
for its orders, and hands the work to a pool of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kernel_calls import descriptor, kernel_call
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import is_tracker, living_workers, takes_results, to_unseen, waits_for_work, writers_of
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Frame, OpenFile

_TAKERS = (("torch/_inductor/compile_worker/subproc_pool.py", "_read_thread"),)
"""Threads that take answers, and set the futures of their process."""


def sidecar_edges(view: View) -> Iterator[Edge]:
    """From who waits for a future to the programs whose answers a thread of it takes, and on to their workers. One that has no work keeps nobody."""
    asked: set[str] = set()
    for one in view.at(Kind.FUTURE):
        if one.followed is not None:
            continue
        for thread in one.threads:
            if thread is one.telling or thread.place.path or one.is_stopped:
                continue
            for edge in _of_thread(view, one, thread):
                asked.add(edge.target)
                yield edge
    for key in sorted(asked & view.seen.keys()):
        side = view.seen[key]
        if side.is_idle and _lacks_worker(view, side):
            yield to_unseen(side, f"what a child of pid {side.process.pid} should deliver", Why.CHILD_QUEUE)
        for worker in _at_work(view, side) if side.is_idle else ():
            evidence = f"hands its work to a pool; its worker pid {worker.process.pid} {worker.does()}"
            yield Edge(source=key, target=worker.key, why=Why.CHILD_QUEUE, evidence=evidence, certainty=Certainty.LIKELY)


def _of_thread(view: View, one: Seen, thread: SeenThread) -> Iterator[Edge]:
    takes = thread.stack.once(_takes_answers)
    pipe = _read(one, thread)
    if pipe is None:
        if takes and (thread.kernel is None or kernel_call(thread.kernel) in ("read", None)):
            yield to_unseen(one, f"what its thread {thread.called} reads", Why.CHILD_QUEUE)
        return
    children = {c.key for c in view.children(one)}
    writers = [w for w in writers_of(view, one, pipe) if w.key in children]
    if takes and not writers:
        yield to_unseen(one, f"the other end of {pipe.path}", Why.CHILD_QUEUE)
    for side in writers:
        if side.is_idle and not side.is_stopped and not _may_work(view, side):
            continue
        evidence = f"its thread {thread.called} takes what pid {side.process.pid} writes into {pipe.path}"
        yield Edge(source=one.key, target=side.key, why=Why.CHILD_QUEUE, evidence=evidence, certainty=Certainty.LIKELY)


def _takes_answers(frames: Sequence[Frame]) -> bool:
    return any(f.file.endswith(file) and short_name(f.function) == name for f in frames for file, name in _TAKERS)


def _read(one: Seen, thread: SeenThread) -> OpenFile | None:
    if thread.kernel is None or kernel_call(thread.kernel) != "read":
        return None
    fd = descriptor(thread.kernel)
    return next((f for f in one.process.files or () if f.fd == fd and f.kind == "pipe" and f.inode is not None), None)


def _may_work(view: View, side: Seen) -> bool:
    """Has it a pool some of whose workers are at work, or were not seen?"""
    return bool(_at_work(view, side)) or _lacks_worker(view, side)


def _lacks_worker(view: View, side: Seen) -> bool:
    count = living_workers(side)
    return any(takes_results(t) for t in side.threads) and (count is None or count > len(_workers(view, side)))


def _at_work(view: View, side: Seen) -> list[Seen]:
    return [w for w in _workers(view, side) if not waits_for_work(w)]


def _workers(view: View, side: Seen) -> list[Seen]:
    return [c for c in view.children(side) if not c.has_ended and not is_tracker(c)]
