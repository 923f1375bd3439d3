"""RRD204 engine paused

Story
    An inference engine was paused or put to sleep for a weight update or a validation and never resumed. It is alive,
    its GPUs are idle, requests wait at its gate.

Evidence
    Coroutines of the engine at a pause or resume gate, and nobody working in it; or requests in flight in its server
    while its scheduler leaves them alone in every sample. What its own endpoints say of a pause or of sleep.

Remedy
    Resume the engine; do it in a finally block.

Not this when
    The update that paused it is still running somewhere: then look there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ray_rl_debug.analyze.await_chains import is_own
from ray_rl_debug.analyze.engines import Engine, is_held, is_marked_paused, is_woken, new_tokens, rests
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.shapes import has_coroutines
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_engines import in_flight
from ray_rl_debug.model.report import Cause, Certainty, Evidence
from ray_rl_debug.model.snapshot import AsyncTask
from ray_rl_debug.rules.scene import Found, Scene, make_finding, may_go_on, proc_evidence, stack_evidence

ID = "RRD204"
NAME = "engine paused"
CAUSE = Cause.ENGINE_PAUSED


_GATES = re.compile(r"(^|_)(resume|resumed|unpause|wake_?up|wait_for_resume|paused?|is_paused|submission_gate|sleeping)($|_)", re.IGNORECASE)
_AT_GATE = frozenset({"event", "condition", "future"})
_ENGINE = re.compile(r"engine|httpserver|rolloutserver|inference|vllm|sglang", re.IGNORECASE)


def detect(scene: Scene) -> Iterator[Found]:
    """Engines that leave their requests alone; engines whose coroutines wait at a pause gate while nothing else of them works."""
    for engine in scene.view.engines:
        yield from _held(scene, engine)
    for one in scene.view.like(has_coroutines):
        if one.is_stopped or not one.is_idle or not scene.graph.into([one.key]) or scene.graph.out(one.key):
            continue
        gated = [t for t in one.process.async_tasks or () if t.awaited is not None and t.awaited.kind in _AT_GATE and _gate(t)]
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
                "resume or wake the engine: the weight update or validation that paused it does not resume it on every path",
                "put the resume into a finally block",
            ],
            phase=one.phase or "rollout",
        )
        yield Found(finding=finding, explains=frozenset([one.key]))


def _held(scene: Scene, engine: Engine) -> Iterator[Found]:
    """A real engine: its scheduler is a process of its own, at which no coroutine stands."""
    view = scene.view
    cores, servers = [view.seen[c] for c in engine.cores], [view.seen[s] for s in engine.servers]
    workers = [view.seen[w] for below in engine.workers.values() for w in below]
    if not cores or not servers or not engine.requests + engine.gated or engine.dead:
        return
    held = engine.gated or all(is_held(c, engine) for c in cores)
    busy = [w for w in (*workers, *(view.seen[h] for h in engine.helpers)) if not rests(w)]
    # what it was asked to do meanwhile, an update of the weights say, has an answer to come; tokens on their way speak against a pause
    if not held or busy or (engine.calls and not engine.gated) or _gets_tokens(view, engine) or new_tokens(view.seen, engine):
        return
    said = _endpoint_says(servers)
    updates = [o for o in view if o.identity.part is None and o.phase in ("weight_sync", "validation") and o.is_at_work]
    certainty = Certainty.POSSIBLE if updates else Certainty.PROVEN if said or any(is_marked_paused(c, engine) for c in cores) else Certainty.LIKELY
    state = said or "paused or asleep"
    first = cores[0]
    at = f"its scheduler {first.does()}" if not engine.names.loops else "its scheduler loop runs but does not take them up"
    evidence = [Evidence(kind="await", where=servers[0].where(), text=f"{in_flight(engine)}")]
    evidence += [stack_evidence(first), proc_evidence(first, "the same in every sample: it takes up no request")]
    if said:
        evidence.append(Evidence(kind="endpoint", where=servers[0].where(), text=f"its own endpoint says that it is {said}"))
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        certainty,
        f"{servers[0].where()} is alive, but {state}: {in_flight(engine)}, and {at}",
        who=[*(s.who() for s in servers), *(c.who() for c in cores)],
        evidence=evidence,
        remedy=[
            f"resume or wake up the engine: {engine.names.pause_calls[0]}",
            "find the weight update or validation that paused it and does not resume it on every path; put the resume into a finally block",
        ],
        phase="rollout",
    )
    yield Found(finding=finding, explains=frozenset([*engine.servers, *engine.cores]))


def _gets_tokens(view: View, engine: Engine) -> bool:
    """Do messages of the scheduler still come out of the engine?"""
    return any(is_woken(view.seen[k]) for k in engine.helpers)


def _endpoint_says(servers: Iterable[Seen]) -> str | None:
    """``paused`` or ``asleep``, where the server's own endpoints were asked and say so."""
    states = [s.process.engine for s in servers if s.process.engine is not None]
    if any(e.sleep_level for e in states):
        return "asleep"
    if any(e.is_paused or e.is_sleeping for e in states):
        return "paused"
    return None


def _gate(task: AsyncTask) -> str | None:
    for frame in reversed(task.chain):
        if is_own(frame) and _GATES.search(frame.function.rsplit(".", 1)[-1]):
            return f"{frame.function}" + (f" ({(frame.file or '').rsplit('/', 1)[-1]}:{frame.line})" if frame.line else "")
    return None
