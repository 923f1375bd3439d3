"""Why a thread that waits inside of its process is no deadlock all the same: a table of excuses, and who of the process may still help it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ray_rl_debug.analyze.await_chains import is_read_in_part
from ray_rl_debug.analyze.coroutines import ticks, went_on
from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import ENDED_BY_LOOPS, WAITS_FOR_RAY, Kind
from ray_rl_debug.analyze.locks_in_ring import ring_of_threads
from ray_rl_debug.analyze.main_activity import SeenThread, moves_data, waits_for_worker
from ray_rl_debug.analyze.pauses import has_loop
from ray_rl_debug.analyze.pools import ends_in_vain
from ray_rl_debug.analyze.progress import is_awake
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.analyze.timed_waits import wakes_by_itself
from ray_rl_debug.analyze.waits_children import has_process_pool, is_tracker, takes_results, waits_for_work
from ray_rl_debug.analyze.whole_looks import lacks_coroutines, lacks_new_thread
from ray_rl_debug.rules.scene import Scene

LOCKS = frozenset({Kind.LOCK, Kind.QUEUE, Kind.JOIN, Kind.FUTURE, Kind.EVENT})
_IN_CALLS = frozenset({Kind.FILE, Kind.SOCKET, Kind.CHILD, Kind.FLOCK, Kind.CUDA})
_ENDED_BY_THREAD = frozenset({Kind.JOIN, Kind.SOCKET})
"""Waits for one known thread: the joined one, or the one that has to send the rest of a stream before it is answered."""


class Case(NamedTuple):
    """A process whose telling thread may wait for nobody outside of it."""

    scene: Scene
    root: Root
    one: Seen
    thread: SeenThread
    joins: bool
    """Is the thread known for which it waits?"""
    lost: bool
    """Does it wait for a pool of processes, none of which has the task?"""
    nested: bool
    """Does it wait for a pool whose workers are threads of its own?"""
    others: list[SeenThread]
    """Threads of its program that may end its wait."""

    @property
    def kind(self) -> Kind:
        return self.thread.place.kind


class Helpers(NamedTuple):
    """Who of the process may still help."""

    waiting: list[SeenThread]
    """Those that wait themselves."""
    pausing: list[SeenThread]
    is_open: bool
    """Does one of these that pause perhaps hold the lock, and slept all through the window?"""


def case_of(scene: Scene, root: Root, one: Seen) -> Case | None:
    """The process as a case of this sort; None where it goes on, is stopped, or is told by the rings of its locks."""
    thread = one.telling
    if thread is None or one.is_stopped or one.is_at_work or ring_of_threads(one):
        return None
    joins = thread.place.kind in _ENDED_BY_THREAD and one.followed is not None
    at_queue = thread.place.kind is Kind.MP_QUEUE
    others = [t for t in one.threads if t is not thread and t.place.path and t.score > 0 and not waits_for_worker(thread, t) and not t.is_apart]
    lost = at_queue and (_no_child_works(scene, one) or ends_in_vain(one))
    return Case(scene, root, one, thread, joins, lost, at_queue and _runs_thread_pool(one), others)


def is_excused(case: Case) -> bool:
    """Does any excuse hold?"""
    return any(excuse(case) for excuse in (*_EXCUSES, *(_OF_STACKS_ALONE if case.scene.view.by_hand else ())))


def helpers_of(case: Case) -> Helpers | None:
    """Who may still help; None where somebody in the process works, and so may release what is waited for."""
    one, others = case.one, case.others
    at_work = [t for t in others if t.place.kind not in LOCKS and not (case.nested and t.place.kind is Kind.MP_QUEUE) and not t.listens]
    pauses = [t for t in at_work if t.place.timed]
    if case.joins and one.followed is not None:
        # the thread that it joins is known: only whoever does something between two pauses may help that one
        in_vain = one.followed.place.kind in LOCKS
        some = [t for t in pauses if is_awake(one.process, t.kernel)] if in_vain else [one.followed]
        pauses = at_work = [t for t in some if t.place.timed]
    # at a plain lock whoever sleeps may hold it: named, where it slept all through the window
    is_open = bool(pauses) and case.kind is Kind.LOCK and not any(is_awake(one.process, t.kernel) for t in pauses)
    if len(pauses) < len(at_work) or (pauses and not is_open and case.scene.hope(one) is not Outlook.STANDS):
        return None
    waiting = sorted((t for t in others if t not in at_work and not t.listens), key=lambda t: not _shares_file(t, case.thread))
    return Helpers(waiting, pauses, is_open)


def is_blind(case: Case) -> bool:
    """Was somebody not read who may end the wait?"""
    process, kind = case.one.process, case.kind
    if kind is Kind.FUTURE and has_process_pool(case.one) and not case.scene.view.children(case.one):
        return True  # a pool has processes, and none of them was seen
    if kind is Kind.FUTURE and has_loop(case.one) and process.async_tasks == ():
        return True
    # in which code of the program a coroutine waits for an answer: that may be what it brings
    if kind in ENDED_BY_LOOPS and (lacks_coroutines(process) or any(map(is_read_in_part, process.async_tasks or ()))):
        return True
    return kind in LOCKS and lacks_new_thread(process)


def is_forked(one: Seen, thread: SeenThread) -> bool:
    """Has it been forked, with the locks of its parent?"""
    return one.process.kind == "child" and not any(f.file.endswith("multiprocessing/spawn.py") for f in thread.frames)


def _is_of_library(case: Case) -> bool:
    """A thread of a library, and no end of a program that joins its threads; native frames alone may tell a lock."""
    at_lock = case.kind is Kind.LOCK and (case.scene.view.by_hand or _is_forked_alone(case.one, case.thread))
    return not case.thread.place.path and not case.joins and not at_lock


def _is_elsewhere(case: Case) -> bool:
    return case.kind not in LOCKS and not case.lost and not case.nested and not case.joins


def _is_awake_at_lock(case: Case) -> bool:
    return case.kind is Kind.LOCK and case.thread.kernel is not None and case.thread.kernel.state != "S"


def _has_future_completed(case: Case) -> bool:
    """A coroutine or a process of it goes on, and may complete the future."""
    return case.kind is Kind.FUTURE and (ticks(case.one.process) or case.scene.children_move(case.one))


def _is_fed_by_coroutine(case: Case) -> bool:
    """A coroutine went on, and may bring what it waits for."""
    return case.kind in ENDED_BY_LOOPS and went_on(case.one.process) and case.scene.hope(case.one) is not Outlook.STANDS


def _is_called_back(case: Case) -> bool:
    """The thread that takes the results of a pool runs what the program has asked for when one comes."""
    takers = (t for t in case.one.threads if t is not case.thread)
    return case.kind is Kind.EVENT and any(map(takes_results, takers)) and case.scene.children_move(case.one)


def _is_alone_in_own_code(case: Case) -> bool:
    """An event that no thread of the process is about to set: a rank stuck in its own code, not in a cycle."""
    return case.kind is Kind.EVENT and not case.others and bool(case.scene.waiting_ranks(case.one))


_EXCUSES: tuple[Callable[[Case], bool], ...] = (
    _is_of_library,
    _is_elsewhere,
    _is_awake_at_lock,
    _has_future_completed,
    _is_fed_by_coroutine,
    _is_called_back,
    _is_alone_in_own_code,
)


def _lacks_main(case: Case) -> bool:
    """Only a thread is shown that Python started, and none that began the program: the one that may release it was not shown.

    Where several threads were shown, all of them at locks, whoever chose them did so for that.
    """
    one, frames = case.one, case.thread.frames
    if not frames or (len(one.threads) > 1 and all(t.place.kind is Kind.LOCK and t.place.path for t in one.threads)):
        return False
    is_started = frames[-1].file.endswith("threading.py") and frames[-1].function.rsplit(".", 1)[-1] in ("_bootstrap", "_bootstrap_inner")
    return is_started and not any(t.is_main for t in one.threads)


def _turns(case: Case) -> bool:
    """The turn of a loop: nobody waits for it, and it looks again without being woken.

    Of one process alone its writer thinks that it is the one that hangs.
    """
    has_company = any(s.threads and s is not case.one for s in case.scene.view)
    return not case.root.waiters and has_company and wakes_by_itself(case.one.process.python, case.thread.frames)


def _asks_ray(case: Case) -> bool:
    """Another thread waits for an answer from outside of the process, and may release this one then."""
    return any(t.place.kind in WAITS_FOR_RAY for t in case.one.threads if t is not case.thread)


def _joins_one_at_work(case: Case) -> bool:
    """The thread that it joins stands in a call of its own, or reads, writes or computes: that one is the cause."""
    joined = case.one.followed
    if not case.joins or joined is None:
        return False
    computes = joined.kernel is None and joined.place.kind is Kind.CODE and bool(joined.sample.active)
    return joined.place.kind in _IN_CALLS or moves_data(joined) or computes


def _shows_no_completer(case: Case) -> bool:
    """Whoever completes a future is another thread, and the file shows none."""
    return case.kind is Kind.FUTURE and len(case.one.threads) == 1


_OF_STACKS_ALONE: tuple[Callable[[Case], bool], ...] = (_lacks_main, _turns, _asks_ray, _joins_one_at_work, _shows_no_completer)
"""Of stacks that somebody collected by hand."""


def _no_child_works(scene: Scene, one: Seen) -> bool:
    """Does it wait for its pool while every worker waits for work? Then the task ended with a worker that was killed."""
    children = [c for c in scene.view.children(one) if not is_tracker(c)]
    return bool(children) and all(waits_for_work(c) for c in children) and not waits_for_work(one)


def _runs_thread_pool(one: Seen) -> bool:
    """Are workers of a pool threads of the process itself?"""
    return any(f.file.endswith("multiprocessing/pool.py") and f.function == "worker" for t in one.threads if t is not one.telling for f in t.frames)


def _is_forked_alone(one: Seen, thread: SeenThread) -> bool:
    """Is it the one thread of a process that was forked, so that whoever had the lock was left behind?"""
    return is_forked(one, thread) and len(one.process.threads) == 1 and kernel_call(thread.kernel) == "futex"


def _shares_file(other: SeenThread, waiting: SeenThread) -> bool:
    """Is it in a file that the waiting one is in? A lock is mostly taken where it is waited for, so it is named before others."""
    return not {file for _, file, _ in other.place.path}.isdisjoint(file for _, file, _ in waiting.place.path)
