"""Did anything of a process move between the samples?

*Frozen* means: every sample shows the same telling stack, lines included, and the process used next to no CPU. *Busy* means: it stays
under the same own function but runs. *Moving* means: it got somewhere (another function path, a finished Ray task). One sample tells nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from ray_rl_debug.analyze.gpu_waits import GPU_COLLECTIVE
from ray_rl_debug.analyze.kernel_calls import descriptor, kernel_call
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, THREAD_WAITS, WAITS_FOR_RANKS, WAITS_FOR_RAY, Kind
from ray_rl_debug.analyze.places import Place
from ray_rl_debug.model.snapshot import CoreWorker, Process, Thread

BUSY_FRACTION = 0.15
"""Share of one core above which a thread counts as running. On a loaded machine an endless loop was seen with 24 to 92 % of a core."""

WANTED_FRACTION = 0.4
"""Share of the window that a thread ran or was ready to run, above which it works: where cores are rare, a busy one gets few per cent of one."""

AWAKE_SLICES_PER_S = 12.0
"""Times a second, and times a sample, a waiting thread may be scheduled and still count as asleep: time-outs of waits and py-spy's stops wake it.

A hung ``ray.get`` was seen to wake 3 to 6 times a second, one whose calls come back 50 to 800 times."""


GLOO_SLICES_PER_S = 250.0
"""gloo's network thread looks around every ten milliseconds, a hundred times a second; collectives make it run many times more often."""


FILE_BYTES = 1 << 20
"""Bytes a window may see read or written before a process that stands in a file call counts as at work; Ray's own threads move kilobytes."""

BULK_BYTES_PER_S = 2 << 20
"""More than a loop that only computes or prints its trouble again and again would read and write: a checkpoint, a data set."""

_MAY_CARRY = frozenset({Kind.CODE, Kind.FILE, Kind.SLEEP})
"""Where bytes of files tell more than the stack: a writer with a bounded rate is met in its pauses."""


_CLOCKLESS = frozenset({Kind.FILE, Kind.SOCKET, Kind.MP_QUEUE, Kind.CHANNEL, Kind.CHILD})
"""Waits that nothing but what is waited for ends,"""
_CLOCKS = frozenset({"poll", "epoll", "select", "sleep"})
"""unless the kernel was asked to come back after a time."""

_PASSED = frozenset({Kind.RAY_GET, Kind.COLLECTIVE, Kind.P2P})
"""Who is met in one of these and elsewhere too came to its end or to its begin, however much processor time the loop around it takes."""


class Motion(str, enum.Enum):
    FROZEN = "frozen"
    BUSY = "busy"
    MOVING = "moving"
    UNKNOWN = "unknown"


_TOLD_BY_WAKING = frozenset({Kind.LOCK, Kind.COLLECTIVE, Kind.P2P})
"""Where who goes on comes back to the same line, and only wakes up more often than who stands."""


def motion_of(process: Process, places: Sequence[Place], thread: Thread | None, core: CoreWorker | None) -> tuple[Motion, str]:
    """Motion of one process and the reason in words.

    Args:
        process: Its facts over the window.
        places: The telling thread's place in each sample, in time order.
        thread: The kernel's view of that thread.
        core: Ray's live statistics, with the count of executed tasks before and after the window.
    """
    if process.state in ("Z", "X"):
        return Motion.UNKNOWN, "has ended"
    if core is not None and core.executed_tasks is not None and core.executed_tasks_before is not None:
        done = core.executed_tasks - core.executed_tasks_before
        if done > 0:
            return Motion.MOVING, f"finished {done} Ray task{'s' if done > 1 else ''} during the window"
    # places of equal threads are one object
    is_one = bool(places) and places.count(places[0]) == len(places)
    distinct = (places[0],) if is_one else tuple({id(p): p for p in places}.values())
    carried = _carried(process, distinct, thread)
    if carried is not None:
        return Motion.MOVING, carried
    if len(distinct) > 1 and len({p.waiter for p in distinct if p.waiter is not None}) > 1:
        return Motion.MOVING, "came out of its wait and into another one"
    if len(places) > 1 and places[0].spins and all(p.spins for p in distinct) and len({p.path for p in distinct}) == 1:
        return Motion.FROZEN, f"spins in {places[0].op}, which is a wait, in all {len(places)} samples"
    if _tries_again(process, places, thread):
        return Motion.FROZEN, f"calls {places[-1].op} again and again with a time limit, and pauses in between"
    if any(p.was_left for p in distinct) and not _waits_for_gil(process, thread):
        return Motion.MOVING, "was somewhere else a moment after its last sample"
    running = _runs(process, thread)
    if len(places) < 2:
        if running:
            return Motion.BUSY, _cpu_text(process, thread)
        is_without = bool(process.window_s) and process.cpu_s is not None and not places
        return Motion.UNKNOWN, "no stacks" if is_without else "one sample only"
    parted = None if is_one else _parted(places, distinct, running=running)
    return parted if parted is not None else _at_one_place(process, distinct, len(places), thread, running=running)


def _parted(places: Sequence[Place], distinct: Sequence[Place], *, running: bool) -> tuple[Motion, str] | None:
    """Motion by looks that met it in other functions or at other lines; None where all met it at one place."""
    functions = {tuple((f, file) for f, file, _ in p.path) for p in distinct}
    lines = {(p.path, p.op) for p in distinct}
    passed = any(p.kind in _PASSED for p in distinct)
    if len(functions) > 1:
        shared = _shared_outer(places)
        # a loop that calls helpers changes its innermost frames only; a step loop changes which phase it is in
        if shared and shared >= min(len(p.path) for p in places) - 1 and running and not passed:
            return Motion.BUSY, "runs in a loop: innermost frames change"
        return Motion.MOVING, "stack changed between samples"
    if len(lines) < 2:
        return None
    if _waits(places):
        return Motion.MOVING, "waits at other lines now"
    return (Motion.MOVING, "came to a wait or left it between samples") if passed else (Motion.BUSY, "same functions, other lines")


def _at_one_place(process: Process, distinct: Sequence[Place], looks: int, thread: Thread | None, *, running: bool) -> tuple[Motion, str]:
    """Motion of one that all looks met at one place, by what the kernel counted meanwhile."""
    kind = distinct[0].kind
    if kind in WAITS_FOR_RAY:
        if process.object_refs_before:
            return Motion.MOVING, "waits for another object than before"
        # what waits for one object sleeps: it is awake because answers come and the next call follows
        if running and thread is not None and thread.cpu_s is not None:
            return Motion.MOVING, "wakes up at its waits for Ray objects: one call follows another"
    if running:
        return Motion.BUSY, _cpu_text(process, thread)
    if len(distinct) > 1 and len({p.waiter is None for p in distinct}) > 1:
        return Motion.UNKNOWN, "whether it was in the same wait before was not read"
    if kind in _TOLD_BY_WAKING and _slices(process, thread) is None and any(t.run_slices is not None for t in process.threads):
        return Motion.UNKNOWN, "whether it slept at one place was not read"
    if is_awake(process, thread) and (woken := _woken(process, kind, thread)) is not None:
        return woken
    if kind is Kind.CODE and thread is not None and thread.state == "R" and (thread.run_slices or 0) > 2 * len(process.samples):
        return Motion.BUSY, "ran when the kernel was asked"
    flow = _flow(process, kind, thread)
    if flow is not None:
        return Motion.MOVING, flow
    if kind is Kind.SOCKET and (process.read_bytes is None) is not (process.written_bytes is None):
        return Motion.UNKNOWN, "only its reads or only its writes were counted"
    return Motion.FROZEN, f"same place in all {looks} samples"


def _woken(process: Process, kind: Kind, thread: Thread | None) -> tuple[Motion, str] | None:
    """Motion of one that woke up more often than who only waits; None where its wait has a clock, or tells nothing by waking."""
    times = f"woke up {thread.run_slices if thread is not None else 0} times during the window"
    if kind is Kind.LOCK and not _waits_for_gil(process, thread):
        # who waits for one lock sleeps: it takes it again and again, or was met on its way back to its own code
        return Motion.BUSY, f"{times} at one lock"
    if kind in _CLOCKLESS and kernel_call(thread) not in _CLOCKS:
        return Motion.MOVING, f"{times}: what it waits for keeps arriving"
    return None


def _tries_again(process: Process, places: Sequence[Place], thread: Thread | None) -> bool:
    """Is it in a wait that its clock will end, and was it met there and in a pause of the same function alone? No try brought it further."""
    if thread is None or thread.wakes_in_s is None or not places or places[-1].kind not in _TRIED or _runs(process, thread):
        return False
    kinds = {p.kind for p in places}
    functions = {tuple((f, file) for f, file, _ in p.path) for p in places}
    return kinds == {places[-1].kind, Kind.SLEEP} and len(functions) == 1 and () not in functions


def comes_round(process: Process, places: Sequence[Place], thread: Thread | None) -> bool:
    """Was it met in a wait that its clock ends, and elsewhere only in the functions around it? That tells nothing of what it was given."""
    if thread is None or (thread.wakes_in_s is None and not any(p.timed for p in places)) or _runs(process, thread):
        return False
    functions = {tuple((f, file) for f, file, _ in p.path) for p in places if p.path}
    longest = max(functions, key=len, default=())
    waits = [p for p in places if len(p.path) == len(longest)]
    around = [f for f in functions if len(f) < len(longest)]
    return bool(around) and all(p.kind in _TRIED for p in waits) and all(f == longest[-len(f) :] for f in around)


_TRIED = THREAD_WAITS | {Kind.MP_QUEUE}


def came_lately(one: Process, places: Sequence[Place], thread: Thread | None) -> bool:
    """Does it stand in a wait to which it came during the window, from another line, without using the processor? Then the wait is young."""
    last = places[-1] if places else None
    if last is None or last.timed or last.kind not in _CLOCKLESS or _runs(one, thread):
        return False
    return kernel_call(thread) not in (*_CLOCKS, None) and any((p.path, p.kind) != (last.path, last.kind) for p in places)


def _waits_for_gil(process: Process, thread: Thread | None) -> bool:
    """Does another thread own the GIL in every sample? Who wants it back asks every five milliseconds, wherever its stack is."""
    owners = [{t.tid for t in sample.threads if t.owns_gil} for sample in process.samples]
    kept = set.intersection(*owners) if owners else set()
    return len(owners) > 1 and bool(kept - {thread.tid if thread is not None else None, None})


def _carried(process: Process, places: Sequence[Place], thread: Thread | None) -> str | None:
    """What the kernel counted over the window that shows progress, wherever the samples found the process."""
    window = process.window_s
    if not window:
        return None  # counts without a time are no rates
    moved = _bytes_moved(process)
    if moved >= BULK_BYTES_PER_S * window and places and all(p.kind in _MAY_CARRY for p in places):
        return f"read or wrote {moved / 1e6:.0f} MB during the window"
    gloo = [t for t in process.threads if t.comm == "gloo_tcp_loop"]
    if gloo and any((t.run_slices or 0) > GLOO_SLICES_PER_S * window for t in gloo):
        return "gloo's network thread was busy during the window: collectives complete"
    if not is_awake(process, thread):
        return None
    if any(p.kind is Kind.DATALOADER for p in places):
        return "woke up many times during the window: batches arrive"
    if places and all(p.kind is Kind.RAY_GET for p in places):
        return "woke up many times during the window: one call follows another"
    # a rendezvous polls its store by nature, and a wait may spin: being awake there tells nothing
    if places and all(p.kind in (Kind.COLLECTIVE, Kind.P2P) and p.op != GPU_COLLECTIVE for p in places) and not _runs(process, thread):
        return "woke up many times during the window: collectives complete"
    return None


def _waits(places: Sequence[Place]) -> bool:
    return all(p.kind in WAITS_FOR_RANKS or p.kind in IDLE_KINDS or p.kind in WAITS_FOR_RAY for p in places)


def _shared_outer(places: Sequence[Place]) -> int:
    """How many outermost own frames (function and file) all samples share."""
    stacks = [[(f, file) for f, file, _ in reversed(p.path)] for p in places]
    count = 0
    for level in zip(*stacks, strict=False):
        if len(set(level)) > 1:
            break
        count += 1
    return count


def _runs(process: Process, thread: Thread | None) -> bool:
    window = process.window_s
    if not window:
        return False
    if thread is not None and thread.cpu_s is not None:
        wanted = thread.cpu_s + _queued_s(thread, window)
        return thread.cpu_s / window > BUSY_FRACTION or wanted / window > WANTED_FRACTION
    return process.cpu_s is not None and process.cpu_s / window > BUSY_FRACTION


def _queued_s(thread: Thread, window: float) -> float:
    """How long it was ready and without a core. Kernels that take a sleeper off their queue late may count its sleep too: more than passed."""
    return thread.queued_s if thread.queued_s is not None and thread.queued_s <= window + CLOCKS_APART_S else 0.0


CLOCKS_APART_S = 0.5
"""The clocks of a thread and of its window are read at different times."""


def _flow(process: Process, kind: Kind, thread: Thread | None) -> str | None:
    """Bytes that move although the stack stands: a long answer that streams in, a long file."""
    window = process.window_s or 0.0
    if kind is Kind.CHANNEL and len(process.threads) == 1 and is_awake(process, thread):  # what comes in is for its one thread
        quiet = [s.quiet_s for s in process.sockets or () if s.state == "ESTABLISHED" and s.quiet_s is not None and s.quiet_s < window]
        if quiet:
            return f"woke up many times during the window, and data came in {min(quiet):.1f} s before its end"
    if kind is Kind.SOCKET and thread is not None:
        fd = descriptor(thread)
        socket = next((s for s in process.sockets or () if s.fd == fd), None) if fd is not None else None
        connections = [s for s in process.sockets or () if s.family.startswith("tcp") and s.state == "ESTABLISHED"]
        if socket is None and len(connections) == 1:
            socket = connections[0]  # a library waits with a descriptor of its own, and reads it in another thread
        if socket is not None and socket.quiet_s is not None and socket.quiet_s < window:
            return f"data came in from {socket.remote} {socket.quiet_s:.1f} s before the end of the window"
    # who asks for some seconds at a time may print between two times that nothing came: only what it reads shows that something did
    has_clock = thread is not None and thread.wakes_in_s is not None
    if kind in _CLOCKLESS and len(process.threads) == 1 and (process.read_bytes if has_clock else _bytes_moved(process)):
        return f"read {process.read_bytes or 0} and wrote {process.written_bytes or 0} bytes during the window"
    if kind is Kind.FILE:
        moved = _bytes_moved(process)
        if moved >= FILE_BYTES:
            return f"read or wrote {moved / 1e6:.0f} MB during the window"
    return None


def _bytes_moved(process: Process) -> int:
    return (process.read_bytes or 0) + (process.written_bytes or 0)


def is_awake(process: Process, thread: Thread | None) -> bool:
    """Was the thread scheduled far more often than the looking itself explains?"""
    slices = _slices(process, thread)
    if slices is None or not process.window_s:
        return False
    return slices > AWAKE_SLICES_PER_S * max(process.window_s, len(process.samples))


def _slices(process: Process, thread: Thread | None) -> int | None:
    """Times the thread was scheduled during the window; of the only one of its process each change of context tells it too."""
    if thread is None or thread.run_slices is not None:
        return thread.run_slices if thread is not None else None
    return process.context_switches if len(process.threads) == 1 else None


def _cpu_text(process: Process, thread: Thread | None) -> str:
    window = process.window_s or 1.0
    spent = thread.cpu_s if thread is not None and thread.cpu_s is not None else process.cpu_s
    queued = _queued_s(thread, window) if thread is not None else 0.0
    starved = f", and was ready but without a core for {100 * queued / window:.0f} % of the time" if queued / window > BUSY_FRACTION else ""
    return f"used {100 * (spent or 0) / window:.0f} % of a core in one place{starved}"
