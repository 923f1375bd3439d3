"""Where a thread stands by the tables of engines and frameworks, and which of its waits are only for the next piece of work."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ray_rl_debug.analyze.frameworks import COLLECTIVES as ENGINE_COLLECTIVES
from ray_rl_debug.analyze.frameworks import COORDINATED, MEETINGS, PAIRED, RESTS, SHARDED, WATCHES, is_transport, spot_of
from ray_rl_debug.analyze.frameworks.compiled_graphs import graph_place
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RANKS, Kind
from ray_rl_debug.analyze.library_frames import is_library, short_name
from ray_rl_debug.model.snapshot import Frame


def engine_place(
    frames: Sequence[Frame], names: Sequence[str], own: int | None, kind: Kind | None, op: str, call: str | None
) -> tuple[Kind | None, str, bool]:
    """What the tables of the engines say of a place, and whether it is a wait that spins; else what was found before."""
    if (at := graph_place(frames)) is not None:
        return *at, True
    for frame in frames[: _NEAR if own is None else own + _NEAR]:
        for spots, of_kind in ((MEETINGS, Kind.RENDEZVOUS), (ENGINE_COLLECTIVES, Kind.COLLECTIVE)):
            if (spot := spot_of(spots, frame.function, frame.file)) is not None:
                return of_kind, short_name(spot.function), True
    if own is None:  # workers of pools between two tasks, and the threads that serve such pools
        at_item = any(short_name(f.function) == "run" and f.file.endswith("concurrent/futures/thread.py") for f in frames)
        return (Kind.IDLE, op, False) if kind is Kind.MP_QUEUE and not at_item else (kind, op, False)
    if kind is Kind.MP_QUEUE and _is_receive_loop(frames, names, own):
        return Kind.IDLE, names[own], False
    function, file = frames[own].function, frames[own].file
    if kind is Kind.MP_QUEUE and (spot_of(WATCHES, function, file) is not None or _is_watch(frames, names, own)):
        return Kind.WATCH, names[own], False
    if (rest := next((k for f, of_file, k in _SERVERS_REST if file.endswith(f) and names[own] in of_file), None)) is not None:
        return rest, names[own], False
    carried = kind not in WAITS_FOR_RANKS and any(is_transport(f.function, f.file) for f in frames[:own])  # a queue is made in a collective
    waits = own > 0 or call in ("poll", "epoll", "futex", "sleep")
    waits = waits and not any(f.file.startswith("torch/") for f in frames[:own])  # no message comes by way of torch: it is at work
    if waits and spot_of(RESTS, function, file) is not None:
        return Kind.IDLE, names[own], False
    return (Kind.CHANNEL, names[own], False) if carried else (kind, op, False)


def coordinated(frames: Sequence[Frame], own: int) -> str | None:
    """The collective of an engine's group that a thread is in, where no frame of torch or the kernel names it: a library of C carries it out."""
    found = (spot_of(COORDINATED, f.function, f.file) for f in frames[: own + _NEAR])
    return next((short_name(s.function) for s in found if s is not None), None)


def sharded(frames: Sequence[Frame], own: int) -> str | None:
    """Where a thread that waits for the GPU waits for parameters of the module that is about to run: for the other ranks, which hold them."""
    found = (spot_of(SHARDED, f.function, f.file) for f in frames[: own + _NEAR])
    return next((short_name(s.function) for s in found if s is not None), None)


def runs_module_together(frames: Sequence[Frame]) -> bool:
    """Does a thread wait in a collective that all ranks make, as long as all of them run the same modules?"""
    return any(spot_of(SHARDED, f.function, f.file) is not None for f in frames[:_DEEP])


_SERVERS_REST = (
    ("gunicorn/arbiter.py", frozenset({"wait_for_signals", "sleep"}), Kind.WATCH),
    ("gunicorn/workers/sync.py", frozenset({"wait"}), Kind.IDLE),
    ("execnet/gateway_base.py", frozenset({"_perform_spawn"}), Kind.IDLE),
)
"""Where the master of a server's workers rests until one of them needs it, and they until somebody asks."""
_DEEP = 24
"""Frames of torch and DeepSpeed that stand above the hook of a module."""


def paired(frames: Sequence[Frame], own: int) -> str | None:
    """The send or receive of a pipeline's stage that a thread is in."""
    found = [s for f in frames[own : own + 3] if (s := spot_of(PAIRED, f.function, f.file)) is not None]
    names = [short_name(s.function) for s in found]
    return next((n for n in names if not n.startswith("_")), names[0] if names else None)  # what their caller is called tells the direction


def _is_receive_loop(frames: Sequence[Frame], names: Sequence[str], own: int) -> bool:
    """Does a child of multiprocessing wait for its next task, in the very function that it was started with?"""
    outside = frames[own + 1 :]
    started = any(short_name(f.function) == "_bootstrap" and f.file.startswith(("multiprocessing/", "multiprocess/")) for f in outside)
    takes = any(n in ("get", "recv", "recv_bytes") and f.file.endswith(_TAKEN_FROM) for n, f in zip(names[:own], frames[:own], strict=True))
    at_task = any(short_name(f.function) in _RUN_TASKS and f.file.endswith(_POOLS) for f in outside)
    asks = "_callmethod" in names[:own]  # of a manager's proxy: an answer, no task
    return started and takes and not asks and not at_task and all(is_library(f) for f in outside if f.file != "<string>")


_TAKEN_FROM = ("multiprocessing/queues.py", "multiprocessing/connection.py", "queue.py")
_POOLS = ("concurrent/futures/process.py", "multiprocessing/pool.py")
_RUN_TASKS = frozenset({"_process_worker", "_process_chunk", "worker", "mapstar", "starmapstar"})
"""Below these a pool's worker is at a task: what it receives there is part of that."""


_NEAR = 6
"""Frames above its own code that an engine's collective has at most: wrappers of torch's operators."""


def _is_watch(frames: Sequence[Frame], names: Sequence[str], own: int) -> bool:
    """Does ``connection.wait`` look for ended processes? Told by what the line names (``p.sentinel``) and by what the function is called."""
    if not any(names[i] == "wait" and frames[i].file.endswith("multiprocessing/connection.py") for i in range(own)):
        return False
    return SENTINELS in (frames[own].calls or ()) or _WATCHERS.search(names[own].lower()) is not None


SENTINELS = "sentinel"
"""Stands among the calls of a line that waits for the sentinels of processes."""
_WATCHERS = re.compile(r"monitor|watch|liveness|supervis|sentinel|death|reap|completion_or_failure")
