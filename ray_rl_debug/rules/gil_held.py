"""RRD504 GIL held by a native call

Story
    A native call (a pathological regular expression, a C extension) never gives the GIL back. The process looks
    busy or asleep; its loops, heartbeats and other threads are dead.

Evidence
    The same thread owns the GIL at the same line in every sample, while asleep or in native code.

Remedy
    Give the call a process of its own with a time limit.

Not this when
    Lines change between samples (a Python loop), or the thread only happens to own the GIL when sampled.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Cause, Certainty
from ray_rl_debug.rules.scene import Found, Scene, make_finding, proc_evidence, stack_evidence

ID = "RRD504"
NAME = "GIL held by a native call"
CAUSE = Cause.GIL_HELD


def detect(scene: Scene) -> Iterator[Found]:
    """Roots whose one thread owns the GIL at one line in every sample, asleep or in native code."""
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
