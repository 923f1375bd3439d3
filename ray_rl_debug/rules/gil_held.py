"""RRD504 GIL held by a native call

Story
    A native call (a pathological regular expression, a C extension) never gives the GIL back. The process looks
    busy or asleep; its loops, heartbeats and other threads are dead.

Evidence
    The same thread owns the GIL at the same line in every sample, while asleep or in native code. In stacks alone: a thread wants
    the GIL, and the only other one that runs Python waits in C and has not given it back.

Remedy
    Give the call a process of its own with a time limit.

Not this when
    Lines change between samples (a Python loop), or the thread only happens to own the GIL when sampled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.places import INTERPRETER
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Cause, Certainty
from ray_rl_debug.rules.scene import Found, Scene, make_finding, proc_evidence, stack_evidence

ID = "RRD504"
NAME = "GIL held by a native call"
CAUSE = Cause.GIL_HELD


def detect(scene: Scene) -> Iterator[Found]:
    """Roots whose one thread owns the GIL at one line in every sample, asleep or in native code; of files, who may have it while others want it."""
    yield from _kept_in_c(scene)
    for _, one in scene.process_roots():
        if len(one.places) < 2 or one.telling is None:
            continue
        holder = _holder(one)
        if holder is None:
            continue
        kernel = holder.kernel
        asleep = kernel is not None and kernel.state in ("S", "D")
        if not asleep and not _native(holder):
            continue
        said = "sleeps with the GIL held" if asleep else f"is in native code ({holder.frames[0].function}) with the GIL held"
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.LIKELY,
            f"{one.where()} {said} in {holder.place.op}: none of its other Python threads can run",
            who=[one.who(thread=holder.name)],
            evidence=[stack_evidence(one), proc_evidence(one, f"thread {holder.called} owns the GIL in all {len(one.places)} samples")],
            remedy=[
                "run the native call in a process of its own, or with a time limit that does not need the GIL (signal.alarm needs it)",
                f"see the native frames: rayrl-debug snapshot --native --here --pid {one.process.pid}",
            ],
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset([one.key]))


def _kept_in_c(scene: Scene) -> Iterator[Found]:
    """Of files: a thread wants the GIL, and the only other one that runs Python waits in C, in a call that does not give it back first."""
    for root, one in scene.process_roots() if scene.view.by_hand else ():
        wanting = [t for t in one.threads if t.place.op == INTERPRETER]
        others = [t for t in one.threads if t not in wanting and _runs_python(t)]
        if not wanting or len(others) != 1 or one.is_stopped or root.waiters:
            continue
        holder = others[0]
        if holder.place.kind is Kind.LOCK or holder.sample.active or _gives_back(holder) or not _native(holder):
            continue
        inner = holder.frames[0].function
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.POSSIBLE,
            f"{one.where()}: its thread {wanting[0].called} waits for {INTERPRETER}, and its thread {holder.called}, the only other one that runs "
            f"Python, waits in {inner} and has not given it back",
            who=[one.who(thread=holder.name)],
            evidence=[stack_evidence(one, thread=holder), stack_evidence(one, thread=wanting[0])],
            remedy=[
                "see what the second thread waits for: if the first one must give that, they wait for each other",
                "release the GIL around a wait in C (Py_BEGIN_ALLOW_THREADS, gil_scoped_release), and take locks after it",
            ],
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset([one.key]))


_RUNS_PYTHON = re.compile(r"^_?Py(?!Thread_|thread)|^(?:run_mod|thread_run|pythread_wrapper|builtin_|method_vectorcall|cfunction_)")
_RELEASED = re.compile(
    r"^(?:lock_PyThread_acquire_lock|lock_acquire|acquire_timed|rlock_acquire|time_sleep|pysleep|floatsleep|select_\w+|sock_\w+|os_\w+|semlock_acquire"
    r"|_multiprocessing_\w+|PyEval_SaveThread|take_gil|drop_gil)"
)
"""Functions of CPython that let others run while they wait."""


def _runs_python(thread: SeenThread) -> bool:
    return any(_RUNS_PYTHON.match(f.function) for f in thread.frames)


def _gives_back(thread: SeenThread) -> bool:
    return any(_RELEASED.match(f.function) for f in thread.frames)


def _holder(one: Seen) -> SeenThread | None:
    for thread in one.threads:
        owned = [any(t.owns_gil and t.tid == thread.tid and t.stack == thread.sample.stack for t in sample.threads) for sample in one.process.samples]
        if (thread.place.path or _native(thread)) and len(owned) > 1 and all(owned):
            return thread
    return None


def _native(thread: SeenThread) -> bool:
    """Is the innermost frame native, or a pattern-matching call that never leaves C?"""
    inner = thread.frames[0]
    return inner.file.endswith((".so", ".c", ".cpp", ".cc", ".h")) or ".so" in inner.file or (inner.file == "re.py" or inner.file.startswith("re/"))
