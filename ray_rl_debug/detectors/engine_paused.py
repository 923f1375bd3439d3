"""RRD204 engine paused

Story
    An inference engine was paused or put to sleep for a weight update or a validation and never resumed. It is alive,
    its GPUs are idle, requests wait at its gate.

Evidence
    Coroutines of the engine at a pause or resume gate, and nobody working in it.

Remedy
    Resume the engine; do it in a finally block.

Not this when
    The update that paused it is still running somewhere: then that is where the waiting ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ray_rl_debug.analyze.coroutines import is_own
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.detectors.scene import Found, Scene, make_finding, may_go_on
from ray_rl_debug.report import Cause, Certainty, Evidence
from ray_rl_debug.snapshot import AsyncTask

ID = "RRD204"
NAME = "engine paused"
CAUSE = Cause.ENGINE_PAUSED


_GATES = re.compile(r"(^|_)(resume|resumed|unpause|wake_?up|wait_for_resume|paused?|is_paused|submission_gate|sleeping)($|_)", re.IGNORECASE)
_ENGINE = re.compile(r"engine|httpserver|rolloutserver|inference|vllm|sglang", re.IGNORECASE)


def detect(scene: Scene) -> Iterator[Found]:
    """Engines whose coroutines wait at a pause gate while nothing else of them works."""
    for one in scene.view:
        if one.is_stopped or not one.is_idle or one.motion is Motion.MOVING or not scene.graph.into([one.key]) or scene.graph.out(one.key):
            continue
        gated = [
            t for t in one.process.async_tasks or () if t.awaited is not None and t.awaited.kind in ("event", "condition", "future") and _gate(t)
        ]
        named = _ENGINE.search(f"{one.identity.class_name} {one.identity.actor or ''} {one.process.title}") or one.identity.role == "engine"
        if not gated or not named or may_go_on(scene, one):
            continue  # what goes on in it, an update of the weights say, may well resume it
        at = _gate(gated[0])
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.LIKELY,
            f"{one.where()} is alive and idle, but paused: {len(gated)} requests wait at {at}",
            who=[one.who()],
            evidence=[
                Evidence(
                    kind="await",
                    where=one.where(),
                    text=f"{len(gated)} coroutines at {at}: awaits {gated[0].awaited.kind if gated[0].awaited else ''}",
                )
            ],
            remedy=[
                "resume or wake up the engine: the weight update or validation that paused it did not undo that on every path",
                "put the resume into a finally block",
            ],
            phase=one.phase or "rollout",
        )
        yield Found(finding=finding, explains=frozenset([one.key]))


def _gate(task: AsyncTask) -> str | None:
    for frame in reversed(task.chain):
        if is_own(frame) and _GATES.search(frame.function.rsplit(".", 1)[-1]):
            return f"{frame.function}" + (f" ({(frame.file or '').rsplit('/', 1)[-1]}:{frame.line})" if frame.line else "")
    return None
