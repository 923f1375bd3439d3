"""Which thread of a process tells what it does: never "the first".

Ray runs a synchronous actor's methods on the main thread and an async actor's on a loop or pool thread; every worker has helper threads
that come first in a dump. Some local servers run the calls of an engine in a thread of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ray_rl_debug.analyze.frameworks import CALLS_THREADS
from ray_rl_debug.analyze.group_threads import is_in_group
from ray_rl_debug.analyze.held_locks import holder, lock_ring
from ray_rl_debug.analyze.kernel_calls import kernel_call, told_by_files, told_by_sockets
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, THREAD_WAITS, WAITS_FOR_RANKS, Kind
from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.analyze.library_places import answers_request, awaits_end_of_stream, makes_requests
from ray_rl_debug.analyze.native_frames import is_native
from ray_rl_debug.analyze.places import Place, may_have_left, place_of, with_cut_end, with_locals
from ray_rl_debug.analyze.stacks import NOWHERE, Stack, Stacks
from ray_rl_debug.analyze.telling_locals import telling_locals
from ray_rl_debug.analyze.thread_scores import LOOP_THREADS, score_of
from ray_rl_debug.model.snapshot import Frame, Node, Process, Sample, Thread, ThreadSample

_NONE: frozenset[int] = frozenset()
_NOT_READ = (-1, NOWHERE)
"""Of a thread whose frames of C were not read."""


class SeenThread(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thread in the last sample, with where it stands."""

    name: str | None
    tid: int | None
    stack: Stack
    place: Place
    sample: ThreadSample
    kernel: Thread | None
    score: int
    """How telling it is; 0 and below for threads that wait for work by design."""
    is_main: bool
    """A process that another thread than its parent's main one forked has its main thread under that one's name."""
    is_apart: bool
    """Does it go round in one function that hands nothing to the rest of the program? Then nobody waits for it, though it moves."""

    @property
    def frames(self) -> tuple[Frame, ...]:
        return self.stack.frames

    @property
    def called(self) -> str:
        """How a sentence names it, behind the word *thread*."""
        return self.name or (str(self.tid) if self.tid is not None else "without a name")

    @property
    def listens(self) -> bool:
        """Does it wait for somebody to call? Then it keeps nobody."""
        return kernel_call(self.kernel) == "accept"

    @property
    def answers(self) -> bool:
        """Does it run what answers a request?"""
        return self.stack.once(answers_request)


def see_threads(node: Node, process: Process, sample: Sample) -> tuple[SeenThread, ...]:
    """All threads of one sample, most telling first."""
    return Looks(Stacks(), node, process).see(sample)


class Looks:
    """What the samples of one process show. Places are found once for all threads that stand at one stack in the same way."""

    __slots__ = (
        "_are_equal", "_in_c", "_in_group", "_in_task", "_is_copied", "_kernel", "_lengths", "_loops", "_seen", "_stacks", "_threads",
        "process",
    )  # fmt: skip

    def __init__(self, stacks: Stacks, node: Node, process: Process, *, are_equal: bool = False) -> None:
        """`are_equal`: all samples are known to have found the same."""
        self.process = process
        self._are_equal = are_equal
        self._stacks = stacks.of(node)
        self._lengths = node.stacks
        self._threads = {t.tid: t for t in process.threads}
        self._kernel: dict[int, Thread] = {}
        tasks = process.async_tasks or ()
        self._loops = {t.tid for t in tasks if t.tid is not None} if tasks else _NONE
        self._in_task = {t.tid for t in tasks if t.awaited is not None and t.awaited.kind == "running"} if tasks else _NONE
        self._in_group = is_in_group(process)
        self._is_copied = not process.threads and process.window_s is None
        self._in_c = {t.tid: (t.stack, stacks.get(node, t.calls)) for t in process.in_c} if process.in_c else {}
        self._seen: list[tuple[tuple[ThreadSample, ...], tuple[SeenThread, ...]]] = []

    def see(self, sample: Sample) -> tuple[SeenThread, ...]:
        """All threads of one sample, most telling first; equal looks are one."""
        for threads, seen in self._seen:
            if threads is sample.threads or threads == sample.threads:
                return seen
        known = self._look_at(sample)
        self._seen.append((sample.threads, known))
        return known

    def _look_at(self, sample: Sample) -> tuple[SeenThread, ...]:
        seen = [one for one in map(self._see, sample.threads) if one is not None]
        seen.sort(key=_telling_first)
        first = _backward(seen) or _sent_to_ranks(seen) or _polled(seen)
        if first is not None and first is not seen[0]:
            seen.remove(first)
            seen.insert(0, first)
        return tuple(seen)

    def worked(self) -> bool:
        """Did any look find it elsewhere than at rest?"""
        return any(t.score > 0 for sample in self.process.samples for t in self.see(sample)[:1])

    def left(self) -> tuple[SeenThread, ...]:
        """Living threads without a name that an earlier look met in the program, and the last did not.

        C made them. They have left Python, so that what they did is done, or the last look missed them.
        """
        *before, last = self.process.samples
        here = {t.tid for t in last.threads}
        if not any(t.name is None and t.tid not in here for sample in before for t in sample.threads):
            return ()  # told before all of them are looked at
        met = {t.tid: t for sample in before for t in self.see(sample) if t.name is None and t.tid in self._threads and t.tid not in here}
        return tuple(t for t in met.values() if t.place.path)

    def places_of(self, thread: SeenThread) -> list[Place]:
        """Where one thread was met at each look; equal looks are one."""
        if self._are_equal and self.process.samples:
            met = self._meet(self.process.samples[-1], thread)
            return [met.place] * len(self.process.samples) if met is not None else []
        found: list[Place] = []
        before: Sample | None = None
        met = None
        for sample in self.process.samples:
            if before is None or (sample.threads is not before.threads and sample.threads != before.threads):
                before, met = sample, self._meet(sample, thread)
            if met is not None:
                found.append(met.place)
        return found

    def stacks_of(self, thread: SeenThread) -> list[Stack]:
        """Its stack at each look, unless all looks found the same."""
        samples = () if self._are_equal else self.process.samples
        same = (t.stack for sample in samples for t in sample.threads if t.tid == thread.tid and t.name == thread.name)
        return [self._stacks[i] for i in same if 0 <= i < len(self._stacks)]

    def _meet(self, sample: Sample, thread: SeenThread) -> SeenThread | None:
        """The same thread at one look."""
        same = [t for t in sample.threads if t.tid == thread.tid and t.name == thread.name]
        if len(same) > 1:
            return next((t for t in self.see(sample) if t.tid == thread.tid and t.name == thread.name), None)
        if same and same[0] == thread.sample:
            return thread
        return self._see(same[0]) if same else None

    def _see(self, thread: ThreadSample) -> SeenThread | None:
        stack = self._stacks[thread.stack] if 0 <= thread.stack < len(self._stacks) else NOWHERE
        if not stack.frames:
            return None
        tid, name, locals_ = thread.tid, thread.name, thread.locals
        kernel = self._kernel_of(tid) if tid is not None else None
        # what `place_of` and `score_of` look at: threads that agree in all of it stand at one place
        of_kernel = (kernel.state, kernel.wchan, kernel.call, kernel.syscall, may_have_left(kernel)) if kernel is not None else None
        of_tasks = (tid in self._loops, tid in self._in_task) if self._loops or self._in_task else None
        at, in_c = self._in_c.get(tid, _NOT_READ) if self._in_c and tid is not None else _NOT_READ
        in_c = in_c if at == thread.stack else NOWHERE
        key = (in_c, name, tid == self.process.pid, thread.active, thread.waits_for_gil, of_kernel, of_tasks, self._in_group, self._is_copied)
        found: tuple[Place, int, bool] | None = stack.known.get(key)
        if found is None:
            bare = msgspec.structs.replace(thread, locals=())
            found = stack.known[key] = self._place(stack, in_c, bare, kernel)
        place, score, is_apart = found
        told = telling_locals(locals_, place.kind) if locals_ else ()
        if told:  # they differ from rank to rank, and tell only for whom it waits
            known = stack.known.get((key, told))
            place = known or with_locals(place, thread, stack.frames)
            stack.known[(key, told)] = place
        is_main = name == "MainThread" or (tid is not None and tid == self.process.pid)
        return SeenThread(name=name, tid=tid, stack=stack, place=place, sample=thread, kernel=kernel, score=score, is_main=is_main, is_apart=is_apart)

    def _kernel_of(self, tid: int) -> Thread | None:
        """What the kernel says of a thread, read with the files and sockets of its process; most threads of a process are never asked about."""
        thread, files, sockets = self._threads.get(tid), self.process.files, self.process.sockets
        if thread is None or not (files or thread.waits_on_fds):
            return thread
        if tid not in self._kernel:
            thread = told_by_files(thread, files) if files else thread
            if sockets and thread.waits_on_fds and not self.process.async_tasks:
                thread = told_by_sockets(thread, sockets)
            self._kernel[tid] = thread
        return self._kernel[tid]

    def _place(self, stack: Stack, in_c: Stack, thread: ThreadSample, kernel: Thread | None) -> tuple[Place, int, bool]:
        """Where the thread stands, how telling it is, and whether it goes round apart."""
        tid = thread.tid
        # the thread that forked keeps its name in the child
        is_named = (thread.name or "").startswith(LOOP_THREADS) and stack.is_whole and len(stack.frames) == len(self._lengths[thread.stack])
        runs_loop = tid in self._loops or is_named
        frames = (*in_c.whole, *stack.frames)
        place = place_of(frames, thread, kernel, runs_loop=runs_loop, in_task=tid in self._in_task, in_group=self._in_group)
        place = msgspec.structs.replace(place, own=place.own - len(in_c.whole)) if in_c.whole and place.own is not None else place
        place = with_cut_end(place, stack.frames) if self._is_copied else place
        is_apart = len(place.path) == 1 and bool(stack.frames[0].apart)
        return place, score_of(self.process, thread, stack.frames, place, kernel), is_apart


def _telling_first(thread: SeenThread) -> tuple[int, bool, int]:
    """Of two that tell as much, nobody waits for the one that hands nothing on."""
    return -thread.score, thread.is_apart, thread.tid or 0


def _backward(seen: Sequence[SeenThread]) -> SeenThread | None:
    """The thread of autograd that the first one waits for in its backward pass: it has no begin in Python, and mostly no name.

    torch runs the hooks of a backward pass on one thread for each device, and so the collectives that they make.
    """
    if not seen or not seen[0].stack.once(is_in_backward):
        return None
    engine = [
        t
        for t in seen[1:]
        if not t.is_main
        and t.place.kind not in IDLE_KINDS
        and (t.stack.once(_is_of_autograd) or (t.name is None and t.place.kind in WAITS_FOR_RANKS and t.stack.once(_is_called_from_c)))
    ]
    return next((t for t in engine if t.place.kind in WAITS_FOR_RANKS), engine[0] if len(engine) == 1 else None)


def is_in_backward(frames: Sequence[Frame]) -> bool:
    """Is the innermost Python frame the one in which torch waits for its backward pass?"""
    inner = next((f for f in frames if not is_native(f)), None)
    return inner is not None and inner.file.startswith("torch/autograd/") and short_name(inner.function) in _BACKWARD


_BACKWARD = frozenset({"_engine_run_backward", "run_backward", "backward", "grad"})


def _is_called_from_c(frames: Sequence[Frame]) -> bool:
    """Did C++ call its outermost Python frame, as it calls the hooks of a framework? Threads of Python's own begin in its threading module."""
    outer = next((f for f in reversed(frames) if not is_native(f)), None)
    return outer is not None and not outer.function.startswith(("_bootstrap", "Thread._bootstrap", "<module>"))


def _is_of_autograd(frames: Sequence[Frame]) -> bool:
    """Did C++ call its outermost Python frame, and is that torch's?"""
    outer = next((f for f in reversed(frames) if not is_native(f)), None)
    return outer is not None and outer.file.startswith("torch/") and _is_called_from_c(frames)


def _sent_to_ranks(seen: Sequence[SeenThread]) -> SeenThread | None:
    """The thread that waits for other ranks, and that the first one waits for: what a rank writes or sends behind its training, it meets in a thread.

    Where several threads may end the wait of the first, none of them tells.
    """
    behind = follow(seen[0], seen) if seen else None
    if behind is None or behind.place.kind not in WAITS_FOR_RANKS or any(_ends_too(behind, t) for t in seen[1:]):
        return None
    return behind


def _ends_too(behind: SeenThread, other: SeenThread) -> bool:
    return other is not behind and other.score > 0 and other.place.kind is behind.place.kind and other.place.path == behind.place.path


def _polled(seen: Sequence[SeenThread]) -> SeenThread | None:
    """The thread that tells: the first, unless it only sleeps between two looks at what another one does for it."""
    if not seen or seen[0].place.kind is not Kind.SLEEP:
        return seen[0] if seen else None
    works = (t for t in seen[1:] if t.score > 0 and t.place.path)
    return next((t for t in works if t.place.kind in WAITS_FOR_RANKS or kernel_call(t.kernel) in _BLOCKS), seen[0])


_BLOCKS = frozenset({"open", "fsync", "flock"})
"""System calls that no helper thread rests in, unlike reads and accepts."""


def follow(telling: SeenThread, others: Sequence[SeenThread]) -> SeenThread | None:
    """The thread that a waiting thread waits for: the one whose object it joins, or that has the lock it wants, else the only one that works, or one
    of a pool at the same line.

    A joined thread that waits for a third in the same way is followed on. So is the one that still makes the requests of a stream, whose answer
    comes at its end.
    """
    makers = [t for t in others if t is not telling and t.stack.once(makes_requests)] if telling.stack.once(awaits_end_of_stream) else []
    if len(makers) == 1:
        return follow(makers[0], [t for t in others if t is not telling]) or makers[0]
    if telling.place.kind not in THREAD_WAITS or _keeps_interpreter(telling):
        return None
    joined = {local.value for local in telling.sample.locals if local.name == "self" and _function(telling, local.frame) in _JOINS}
    rest = [t for t in others if t is not telling]
    for other in rest:
        own = {local.value for local in other.sample.locals if local.name == "self" and _function(other, local.frame) in _STARTS}
        if joined & own:
            return follow(other, rest) or other
    if (owner := holder(telling, [telling, *rest])) is not None:
        return None if owner is telling else owner if lock_ring(telling, [telling, *rest]) else follow(owner, rest) or owner
    working = helpers(telling, others)
    if telling.place.kind in _HANDED_ON and all(t.kernel is None for t in (telling, *others)):
        # of a copied pipeline of threads, those that wait for the next one's work too are no end of the chain
        working = [t for t in working if t.place.kind not in THREAD_WAITS] or working
    return working[0] if len({(t.place.kind, t.place.path) for t in working}) == 1 else None


def helpers(telling: SeenThread, others: Sequence[SeenThread]) -> list[SeenThread]:
    """The threads that may end the wait of one that waits inside of its process. A future that a pool of threads has is ended by these alone."""
    found = [
        t
        for t in others
        if t is not telling
        and t.score > 0
        and (t.place.path or t.place.kind is Kind.MP_QUEUE)
        and not waits_for_worker(telling, t)
        and not t.is_apart
    ]
    # what a pool was handed may be a library's, without any frame of the program
    in_pool = [t for t in others if t is not telling and t.stack.once(is_in_pool)] if telling.place.kind is Kind.FUTURE else []
    return in_pool or found


def is_in_pool(frames: Sequence[Frame]) -> bool:
    """Does it run what was handed to a pool of threads?"""
    return any(short_name(f.function) == "run" and f.file.endswith("concurrent/futures/thread.py") for f in frames)


def _keeps_interpreter(thread: SeenThread) -> bool:
    """Does it sleep in C with the interpreter's lock in its hands? No other thread of Python can do anything for it then."""
    return bool(thread.sample.owns_gil) and thread.kernel is not None and thread.kernel.state == "S"


def waits_for_worker(worker: SeenThread, other: SeenThread) -> bool:
    """Does a request's thread only wait for the result of the thread that does the work?"""
    return worker.name in CALLS_THREADS and other.place.kind is Kind.FUTURE


def moves_data(thread: SeenThread) -> bool:
    """Of stacks alone: does its innermost own function read or write something, as its name says? What it calls there is in C."""
    if thread.kernel is not None or thread.place.kind is not Kind.CODE or thread.place.own is None:
        return False
    return _MOVES.search(_function(thread, thread.place.own).lower()) is not None


_MOVES = re.compile(r"(?:^|_)(?:p?read|p?write|send|recv|put|fetch|flush|fsync|upload|download|connect|persist|dump)(?:_|$|\d|all|v$|into|bytes|obj)")
_HANDED_ON = frozenset({Kind.JOIN, Kind.QUEUE})
"""Waits of a thread for what goes from thread to thread of its program."""
_JOINS = frozenset({"join", "_wait_for_tstate_lock"})
_STARTS = frozenset({"_bootstrap", "_bootstrap_inner", "run"})


def _function(thread: SeenThread, frame: int) -> str:
    return short_name(thread.frames[frame].function) if 0 <= frame < len(thread.frames) else ""
