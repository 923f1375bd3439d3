"""One job under watch: beats in, looks, verdicts and events out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ray_rl_debug.model.report import Certainty, State
from ray_rl_debug.model.snapshot import RayJob
from ray_rl_debug.privacy.redact import made_safe
from ray_rl_debug.watch.beats import GPU_WORKS, Beat
from ray_rl_debug.watch.closer_look import KEPT_BYTES, KEPT_LOOKS, Look, spared
from ray_rl_debug.watch.decide import Decision, Progress
from ray_rl_debug.watch.history import Event, History
from ray_rl_debug.watch.laggard import Laggards
from ray_rl_debug.watch.learn import Limits
from ray_rl_debug.watch.signals import GpuSign

REST_S = 8.0
"""After a look that found nothing."""
SUSPECT_S = 2.0
"""After a look that found what may still be usual."""
STAND_S = 6.0
"""Of standing still, beside a hang that people were told of."""
CONFIRM_S = 30.0
"""Before ``--stop-job`` acts, a second look this much later must give the same verdict."""
PROGRESS_EVERY_S = 60.0


class JobWatch:
    """What is known of one job, and what was said of it."""

    def __init__(self, job: RayJob, history: History, limits: Limits, *, interval_s: float, now: float, now_s: float) -> None:
        self.job = job
        self.history = history
        self.progress = Progress(limits, history.load(), interval_s=interval_s)
        self._laggards = Laggards()
        self.decision = Decision()
        self.alarmed: str | None = self._open_verdict()
        """Key of the verdict that people were told and that still holds."""
        self.alarmed_at: float | None = None
        self._stuck: frozenset[str] | None = None
        """Roles that stood still when people were told; None: not known yet, an earlier companion told them."""
        self._stuck_from = now + STAND_S
        self.last_look: Look | None = None
        self._suspect_until = 0.0
        self._saved_at = now
        again = " again" if history.events else ""
        self._event(now_s, "started", f"watching job {job.job_id}{again}: {job.entrypoint or '?'}")

    def take(self, beat: Beat, now_s: float, gpus: Iterable[GpuSign] = ()) -> list[Event]:
        """The next beat, and the GPUs of the cluster as they were last seen; what is to be said of it."""
        said = []
        self.progress.is_hung = self.alarmed is not None
        if self.alarmed is not None and self._is_moving(beat):
            said.append(self._event(now_s, "recovered", "the job makes progress again", state="healthy"))
            self.alarmed = self.alarmed_at = self.last_look = None
        self.decision = self.progress.feed(beat)
        if self.alarmed is not None and self._stuck is None and beat.at_s >= self._stuck_from:
            self._stuck = self.progress.standing(beat.at_s, STAND_S)
        self.progress.is_hung = self.alarmed is not None
        for slow in (self.decision.slow, self._laggards.feed(beat)):
            if slow is not None:
                said.append(self._event(now_s, "slow", slow))
        if beat.at_s - self._saved_at >= PROGRESS_EVERY_S:
            self._saved_at = beat.at_s
            self._keep_progress(beat, now_s, gpus)
        return said

    def judge(self, look: Look, now: float, now_s: float) -> tuple[Event, bool]:
        """What a look means: its event, for `keep`, and whether people are to be told now."""
        is_same = self._is_same_death(look, now)
        self.last_look, self._suspect_until = look, now + SUSPECT_S
        state, age = look.report.verdict.state, self.progress.age_s(now)
        is_sure = look.report.verdict.certainty is not Certainty.POSSIBLE
        if look.snapshot.ray is not None:
            self.progress.teach(look.snapshot.ray.history)
            self.decision = self.progress.seen(now, is_still=state in (State.HANG, State.SLOW), is_hang=look.is_hang, is_sure=is_sure)
        age_told = round(max(age, self.decision.age_s), 1)
        numbers = {"look_s": round(look.took_s, 2)}
        if state is State.HEALTHY and is_sure:  # what is only possible is no progress that was seen
            self.progress.moved(now, rest_s=REST_S)
        text = look.report.verdict.summary
        kind, tell, key = "look", False, look.key if look.is_hang else None
        if not look.is_hang and not self._is_stalled(state, age_told):
            text = f"{state.value}: {text}"
        elif look.is_hang and not (self.decision.declared or look.is_proven or is_same):
            text = f"suspected: {text} (this may still be normal)"
        elif look.key == self.alarmed:
            text = f"still: {text}"
        else:
            self.alarmed, self.alarmed_at, key = look.key, now, look.key
            self._stuck = self.progress.standing(now, STAND_S)
            kind, tell = "verdict", True
        could_tell = state not in (State.UNKNOWN, State.SLOW) and (is_sure or state is not State.HEALTHY)
        self.progress.looked(now, took_s=look.took_s, rest_s=CONFIRM_S if look.is_hang and self.alarmed else SUSPECT_S, could_tell=could_tell)
        return _made(now_s, kind, text, state=state.value, key=key, age_s=age_told, numbers=numbers), tell

    def verdict(self, look: Look, now_s: float) -> Event:
        """Of a job that has ended, for `keep`."""
        return _made(now_s, "verdict", look.report.verdict.summary, state=look.report.verdict.state.value)

    def keep(self, event: Event, look: Look) -> Event:
        """The event of a look whose files are written, with their folder, into the history."""
        kept = msgspec.structs.replace(event, folder=look.folder.name if look.folder is not None else None)
        self.history.add(kept)
        return kept

    def wants_look(self, now: float) -> bool:
        """Now, or as soon as what was only suspected is out of the ordinary."""
        suspects = self.last_look is not None and self.last_look.is_hang and self.alarmed is None and now >= self._suspect_until
        return self.decision.look or (suspects and (self.decision.declared or self._is_again_due(now)))

    def is_confirmed(self, look: Look, now: float) -> bool:
        """Has the verdict that people were told held for a while?"""
        return look.key == self.alarmed and self.alarmed_at is not None and now - self.alarmed_at >= CONFIRM_S

    def prune(self) -> list[str]:
        return self.history.prune(keep=KEPT_LOOKS, max_bytes=KEPT_BYTES, spare=spared(self.history))

    def end(self, now_s: float, text: str) -> Event:
        """The job is over, or we leave."""
        self.history.save_learned(self.progress.learned)
        return self._event(now_s, "ended", text)

    def note(self, now_s: float, kind: str, text: str) -> Event:
        """Anything else worth keeping."""
        return self._event(now_s, kind, text)

    def _event(self, now_s: float, kind: str, text: str, **more: object) -> Event:
        event = _made(now_s, kind, text, **more)
        self.history.add(event)
        return event

    def _keep_progress(self, beat: Beat, now_s: float, gpus: Iterable[GpuSign]) -> None:
        age = round(self.progress.age_s(beat.at_s), 1)
        numbers = {
            "processes": float(beat.processes),
            "working": float(beat.working),
            **({"step": float(beat.step)} if beat.step is not None else {}),
            **_gpu_numbers(tuple(gpus)),
        }
        self._event(now_s, "progress", "", age_s=age, numbers=numbers)
        self.history.save_learned(self.progress.learned)

    def _is_stalled(self, state: State, age_s: float) -> bool:
        """Nothing has moved for far too long, and no rule says why: people are told as well."""
        return state is State.UNKNOWN and self.decision.declared and age_s >= self.progress.limits.first_s

    def _is_same_death(self, look: Look, now: float) -> bool:
        """Two looks name the same dead or stopped process, and nothing has moved for a while: what is usual has no say."""
        before = self.last_look
        return look.is_never_usual and before is not None and before.key == look.key and self.progress.age_s(now) >= self.progress.limits.floor_s

    def _is_again_due(self, now: float) -> bool:
        """Is a second look wanted at a death or a stop that one look has shown?"""
        return self.last_look is not None and self.last_look.is_never_usual and self.progress.age_s(now) >= self.progress.limits.floor_s

    def _is_moving(self, beat: Beat) -> bool:
        """A poller's calls are no recovery: a role that stood still must move, or a step be made."""
        step = self.progress.learned.step
        if beat.step is not None and (step is None or beat.step > step):
            return True
        if self._stuck is None:
            return False
        return any(not self._stuck or role in self._stuck for role, _ in beat.moved)

    def _open_verdict(self) -> str | None:
        """The verdict that an earlier companion told and that nothing has ended since."""
        for event in reversed(self.history.events):
            if event.kind == "recovered":
                return None
            if event.kind == "verdict" and event.state != State.FINISHED.value:
                return event.key
        return None


def _made(now_s: float, kind: str, text: str, **more: object) -> Event:
    return made_safe(Event(time_s=round(now_s, 3), kind=kind, text=text[:2000], **more))  # type: ignore[arg-type]


def _gpu_numbers(gpus: Sequence[GpuSign]) -> dict[str, float]:
    """All GPUs of the cluster in a few numbers; what is not known is not there."""
    busy = [g.utilization for g in gpus if g.utilization is not None]
    watts = [g.power_watts for g in gpus if g.power_watts is not None]
    held = [g.memory_bytes for g in gpus if g.memory_bytes is not None]
    return {
        **({"gpus": float(len(gpus))} if gpus else {}),
        **({"gpu_utilization": round(sum(busy) / len(busy), 3), "gpus_idle": float(sum(b < GPU_WORKS for b in busy))} if busy else {}),
        **({"gpu_power_watts": round(sum(watts), 1)} if watts else {}),
        **({"gpu_memory_bytes": float(sum(held))} if held else {}),
    }
