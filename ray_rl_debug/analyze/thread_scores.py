"""How much a thread tells of what its process does: a thread that runs a call for Ray most, one that waits for work by design nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ray_rl_debug.analyze.frameworks import CALLS_THREADS
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, Kind
from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.analyze.native_frames import is_native
from ray_rl_debug.analyze.places import INTERPRETER, Place
from ray_rl_debug.model.snapshot import Frame, Process, Thread, ThreadSample

LOOP_THREADS = ("AsyncIO Thread", "asyncio_loop")
"""Names of threads that run an event loop: Ray's async actors."""
EXECUTORS = frozenset({"actor_method_executor", "_resume_span", "sync_to_async", "execute_task", "function_executor"})


def score_of(process: Process, thread: ThreadSample, frames: Sequence[Frame], place: Place, kernel: Thread | None) -> int:
    """The score of one thread; 0 and below where it waits for work by design."""
    if place.kind in IDLE_KINDS:
        return -1 if place.kind is Kind.RAY_IDLE else -2
    is_of_c = all(is_native(f) for f in frames)
    if is_of_c and thread.name != "MainThread" and thread.tid != process.pid and place.op != INTERPRETER:
        return -1  # a thread of a library, without anything of Python
    executing = executes(thread, frames)
    main = thread.name == "MainThread" or (thread.tid is not None and thread.tid == process.pid)
    score = 10
    if executing:
        score += 20
    if main:
        score += 12
    if thread.name in CALLS_THREADS:
        score += 25
    if not place.path:
        score -= 9
    if is_of_c and place.kind in _SAYS_LITTLE:
        score -= 4  # where only C was shown of the main thread, one with Python's frames tells more
    if place.kind in (Kind.COLLECTIVE, Kind.P2P, Kind.RENDEZVOUS, Kind.NEW_GROUP, Kind.DESTROY, Kind.RAY_GET):
        score += 4
    if thread.active and (kernel is None or kernel.state == "R"):
        score += 2
    if not main and not executing:
        if place.kind in _BETWEEN and (not place.path or (thread.name and _is_service(thread.name))):
            return -1  # a library's thread between two pieces of work, a service's between two beats
        if place.kind is Kind.CHANNEL and _SERVES.search(short_name(place.path[0][0] if place.path else "").lower()):
            return -1  # a server of messages between two requests
        if thread.name and _is_service(thread.name):
            if kernel is None and place.kind is Kind.CODE:
                return -1  # its stack alone does not show the pause between two beats
            score -= 8
    return score


_SAYS_LITTLE = frozenset({Kind.EVENT, Kind.LOCK, Kind.CODE})
_BETWEEN = frozenset({Kind.EVENT, Kind.QUEUE, Kind.SLEEP})
_SERVES = re.compile(r"serve|listen|accept|wait_connection|dispatch|routine|(^|_)(loop|worker|poller|reader|receiver|proxy|router)$")
"""Functions of threads that wait for the next message by design."""


def executes(thread: ThreadSample, frames: Sequence[Frame]) -> bool:
    """Does it run a method for Ray? Ray's tracing wraps all functions of an actor's class, also those that a thread of its own runs."""
    names = {short_name(f.function) for f in frames}
    if not names & EXECUTORS:
        return False
    wrapped_only = names & EXECUTORS == {"_resume_span"}
    own_thread = any(f.function == "Thread.run" and f.file == "threading.py" for f in frames) and not (thread.name or "").startswith(LOOP_THREADS)
    return not (wrapped_only and own_thread)


def _is_service(name: str) -> bool:
    low = name.lower()
    return any(w in low for w in ("heartbeat", "monitor", "watchdog", "metrics", "tqdm", "notify", "gcthread", "start_loop", "callback", "flusher"))
