"""Is it a hang as the guides describe one? Their three symptoms, each with what was measured. A symptom is no cause: the verdict names that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ray_rl_debug.analyze.by_hand import apart_s, looks
from ray_rl_debug.analyze.phase import phase_of_name
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Cause, Finding, State, Symptom, Verdict

_JOB = ("ray-worker", "driver", "named", "child")
_WORK = frozenset({"rollout", "reward", "logprob", "values", "advantage", "update"})
_ENDED = {State.FINISHED: True, State.HANG: False, State.HEALTHY: False, State.SLOW: False}
IDLE_PERCENT, BUSY_PERCENT = 5.0, 90.0
"""Of a GPU: below the first nobody works on it, above the second a kernel runs, also one that only waits for others."""


def find_symptoms(view: View, verdict: Verdict, findings: Sequence[Finding]) -> tuple[Symptom, ...]:
    """No progress, ended without a step, GPUs that part: holds, does not hold, or not measured (None)."""
    return (_no_progress(view, verdict), _no_step(view, verdict, findings), _gpus_part(view))


def _no_progress(view: View, verdict: Verdict) -> Symptom:
    """Logs and steps stand still while the processes live."""
    seen = [s for s in view if s.process.kind in _JOB]
    holds = {State.HANG: True, State.HEALTHY: False, State.FINISHED: False}.get(verdict.state)
    if not seen:
        return Symptom(number=1, name="no progress", holds=None, measured="no process of a job was seen")
    motions = Counter([s.motion for s in seen])
    moved, busy, unknown = motions[Motion.MOVING], motions[Motion.BUSY], motions[Motion.UNKNOWN]
    window = max((s.process.window_s or 0.0 for s in seen), default=0.0)
    if window <= 0:
        return _of_looks([s for s in seen if len(looks(s.process)) > 1], holds)
    parts = [f"{moved} of {len(seen)} process{'' if len(seen) == 1 else 'es'} moved in {window:.1f} s"]
    parts += [f"{busy} used the processor without being seen to move"] if busy else []
    parts += [f"{unknown} not told"] if unknown else []
    loads = [cpu_s / window_s if (cpu_s := s.process.cpu_s) is not None and (window_s := s.process.window_s) else -1.0 for s in seen]
    if max(loads) >= 0:
        parts.append(f"most CPU {100 * max(loads):.0f} % ({seen[loads.index(max(loads))].identity.label})")
    quiet = _log_age_s(seen)
    parts.append(f"last line of a log {quiet:.0f} s ago" if quiet is not None else "logs not measured")
    return Symptom(number=1, name="no progress", holds=holds, measured=", ".join(parts))


def _of_looks(seen: Sequence[Seen], holds: bool | None) -> Symptom:
    """The same of files: processes that somebody dumped more than once."""
    if not seen:
        return Symptom(number=1, name="no progress", holds=None, measured="the files hold single looks: whether anybody moves was not measured")
    moved = sum(s.motion is Motion.MOVING for s in seen)
    apart = max(apart_s(s.process) for s in seen)
    when = f", {apart:.0f} s apart," if apart >= 1 else ""
    return Symptom(
        number=1, name="no progress", holds=holds, measured=f"{moved} of {len(seen)} processes that were dumped more than once{when} had moved"
    )


def _log_age_s(seen: Sequence[Seen]) -> float | None:
    """Since somebody last wrote to the file of its standard output or error."""
    ages = []
    for one in (s for s in seen if s.process.files):
        written = [f.written_time_s for f in one.process.files or () if f.written_time_s is not None and f.fd in (1, 2)]
        ages += [one.node.started_time_s + one.node.window_s - t for t in written]
    return max(0.0, min(ages)) if ages else None


def _no_step(view: View, verdict: Verdict, findings: Sequence[Finding]) -> Symptom:
    """The job ended well and made no step, or hangs in its cleanup."""

    def said(holds: bool | None, measured: str) -> Symptom:
        return Symptom(number=2, name="ended without a step", holds=holds, measured=measured)

    zero = next((f for f in findings if f.cause is Cause.ZERO_STEPS), None)
    if zero is not None:
        return said(True, zero.summary)
    history = view.snapshot.ray.history if view.snapshot.ray is not None else ()
    steps = sum(phase_of_name(h.name) in _WORK for h in history)
    if steps:
        return said(False, f"Ray's task events hold calls of {steps} kinds of training work")
    if any(f.cause is Cause.CLEANUP_DEADLOCK for f in findings):
        return said(None, "processes are in cleanup; whether a step was made is not in a snapshot")
    alive = next((s for s in view if s.process.kind in ("driver", "named") and not s.has_ended), None)
    if alive is not None and _ENDED.get(verdict.state) is False:
        return said(False, f"the run has not ended: {alive.where()} lives")
    return said(None, "no task events of Ray")


def _gpus_part(view: View) -> Symptom:
    """Some GPUs are idle while others are at full load."""

    def said(holds: bool | None, measured: str) -> Symptom:
        return Symptom(number=3, name="some GPUs idle, others busy", holds=holds, measured=measured)

    loads = [g.utilization_percent for n in view.snapshot.nodes for g in n.gpus or () if g.utilization_percent is not None and g.mig_parent is None]
    if not loads:
        return said(None, "no GPU was seen")
    idle, busy = sum(u <= IDLE_PERCENT for u in loads), sum(u >= BUSY_PERCENT for u in loads)
    rest = len(loads) - idle - busy
    counts = [f"{n} {word}" for n, word in ((idle, "at 0 %"), (busy, "at 100 %"), (rest, "between")) if n]
    if len(loads) == 1:
        return said(None, f"one GPU only, at {loads[0]:.0f} %")
    return said(bool(idle and busy), f"of {len(loads)} GPUs {', '.join(counts)}")
