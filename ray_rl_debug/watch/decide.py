"""When has a run stopped? Pure: beats in, decisions out; nothing is read here, neither clock nor file.

Every role (an actor class) has a *progress age*: the time since one of its Ray calls began or ended, or the run logged a new step. Two questions
are kept apart:

*look*: is it worth a closer look (a snapshot)? Asked early, after some seconds, and again ever more rarely while nothing changes.
*declared*: would a stall of this age be out of the ordinary for this run? Only then may people be woken. A call that was never seen to end (a
first step that compiles, a first validation, a first checkpoint) gets `Limits.first_s`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from ray_rl_debug.model.snapshot import TaskHistory
from ray_rl_debug.watch.beats import Beat
from ray_rl_debug.watch.learn import ENOUGH, Gaps, Learned, Limits, patience_s, usual_text
from ray_rl_debug.watch.stalls import AHEAD_S, CLOSE_S, Looks, Stall

BLIND_TIMES = 1.5
"""Intervals between two beats, beyond the first, from which on something kept us from looking."""
SLOW_FACTOR = 3.0
SLOW_REST_S = 60.0
"""One slow-down shows in several roles."""
CALM, CLOSE = 1.5, 0.5
"""Intervals between two readings while a run that is known goes on, and while something stands still."""
CARRIES_S = 8.0
"""For so long a role counts as moving bytes after it was seen to: a closer look, during which nothing is read, is shorter."""
CHECKPOINT_FLOORS, SEEN_FLOORS = 3.0, 1.5
"""Floors before a run within one endless call is late with its step: a checkpoint looks alike from afar, though not to a closer look."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What one beat leads to."""

    look: bool = False
    soon: bool = False
    """A look will fall due within seconds if nothing moves,"""
    closely: bool = False
    """so soon that even dear signs are cheaper."""
    declared: bool = False
    """The stall is out of the ordinary for this run."""
    age_s: float = 0.0
    """Since the last progress of what stands still."""
    role: str | None = None
    """The role that stands still; None when all do."""
    reason: str = ""
    slow: str | None = None
    """A slow-down that is over: progress came, much later than usual."""


class Progress:
    """One job over time."""

    def __init__(self, limits: Limits, learned: Learned | None = None, *, interval_s: float = 2.0) -> None:
        self.limits = limits
        self.learned = learned or Learned()
        self.is_hung = False
        """As long as a hang lasts nothing is learned: its length is not what is usual."""
        self._had_hang = False
        self.roles: dict[str, float] = {}
        """When each role made progress last."""
        self.wait_s = interval_s
        """Until the next reading is wanted."""
        self._interval_s = interval_s
        self._span_s = interval_s
        """The last time between two readings in which somebody looked."""
        self._began: float | None = None
        self._mark_s = self._work_s = self._fed_s = 0.0
        self._step_s: float | None = None
        self._patient_s = 0.0
        self._looks = Looks(limits)
        self._carried: dict[str, float] = {}
        """When each role was last seen to move bytes."""
        self._slow_until = 0.0
        self._calls: tuple[tuple[str, str], ...] = ()
        self._lasting: frozenset[tuple[str, str]] = frozenset()
        """Roles and calls that a closer look has shown to last, and that have not moved since."""
        self._is_hang_seen = False
        """The last closer look was sure of a hang, and nothing has moved since."""

    def feed(self, beat: Beat) -> Decision:
        """Take the next beat."""
        now = beat.at_s
        self._had_hang |= self.is_hung
        if self._began is None:
            self._began = self._mark_s = self._work_s = self._patient_s = self._fed_s = now
        self._skip(now)
        slow = self._mark(beat)
        self._carried.update(dict.fromkeys(beat.carries, now))
        if beat.working or beat.rhythm or beat.gpus_work or beat.moved or beat.carries or beat.counted:
            if now - self._work_s > 1.5 * self._span_s and not self.is_hung:
                self.learned.quiet.add(now - self._work_s)
            self._work_s = now
        for role, _ in beat.calls:
            self.roles.setdefault(role, now)
        self._calls = beat.calls
        return self.decide(now, slow)

    def _skip(self, now: float) -> None:
        """Time in which nobody looked, because we or the machine were busy or stopped, is not time in which nothing moved."""
        blind = now - self._fed_s - self.wait_s
        self._span_s = min(now - self._fed_s, self.wait_s)
        self._fed_s = now
        if blind > BLIND_TIMES * self._interval_s:
            self._mark_s, self._work_s, self._patient_s = self._mark_s + blind, self._work_s + blind, self._patient_s + blind
            self.roles = {role: at + blind for role, at in self.roles.items()}
            if self._step_s is not None:
                self._step_s += blind

    def decide(self, now: float, slow: str | None = None) -> Decision:
        """The state at this moment."""
        if self._began is None:
            return Decision()
        stalls, patient = self._stalls(now)
        if patient:
            self._patient_s = now
        self._looks.keep(stalls)
        due = [s for s in stalls if self._looks.is_due(s, now)]
        overdue = [s for s in stalls if s.overdue]
        pressing = not self.is_hung and any(s.overdue or s.excused for s in stalls)
        soon = pressing or (not self.is_hung and any(self._looks.is_due_in(AHEAD_S, s, now) for s in stalls))
        closely = pressing or (soon and any(self._looks.is_due_in(CLOSE_S, s, now) for s in stalls))
        shown = max(overdue or due or stalls[:1], key=lambda s: (s.overdue, s.role is not None, s.age_s))
        declared = bool(overdue) and (not patient or shown.age_s >= self.limits.ceiling_s)
        self.wait_s = self._interval_s * (CLOSE if closely else CALM if not soon and self.learned.job.count >= ENOUGH else 1.0)
        return Decision(
            look=bool(due),
            soon=soon,
            closely=closely,
            declared=declared,
            age_s=shown.age_s,
            role=shown.role,
            reason=shown.reason,
            slow=slow,
        )

    def teach(self, history: Iterable[TaskHistory]) -> None:
        self.learned.teach(history, had_hang=self._had_hang)

    @property
    def longest_step_s(self) -> float | None:
        """Of the last steps; None where too few are known."""
        steps = self.learned.steps
        return steps.longest_s if steps.count >= ENOUGH else None

    def age_s(self, now: float) -> float:
        """Since any progress of this job."""
        return now - self._mark_s if self._began is not None else 0.0

    def standing(self, now: float, seconds: float) -> frozenset[str]:
        """Roles that have been in a call without progress for so long."""
        return frozenset(role for role, _ in self._calls if now - self.roles[role] >= seconds)

    def seen(self, now: float, *, is_still: bool, is_hang: bool, is_sure: bool) -> Decision:
        """The state, with what a closer look has just shown.

        A look that saw the job stand still (`is_still`) was no time in which nobody looked. A hang, even one that is only possible, means that
        it is one call that lasts, so that Ray's own figures may be compared with; equal titles in two readings may as well be two calls of one
        name. A sure hang (`is_sure`) means that nobody writes a checkpoint.
        """
        if is_still and self._began is not None:
            self._fed_s = now
        if is_hang:
            self._lasting = frozenset(self._calls)
        self._is_hang_seen = is_hang and is_sure
        return self.decide(now)

    def moved(self, now: float, *, rest_s: float) -> None:
        """A closer look saw progress that the cheap signs do not show."""
        self._looks.found_healthy(self._stalls(now)[0], now, rest_s=rest_s)
        self._mark_s = self._work_s = self._patient_s = now
        self.roles = dict.fromkeys(self.roles, now)

    def looked(self, now: float, *, took_s: float = 0.0, rest_s: float, could_tell: bool = True) -> None:
        """A closer look was taken; `could_tell`: it was long enough to know what it saw."""
        self._looks.taken(self._stalls(now)[0], now, took_s=took_s, rest_s=rest_s, could_tell=could_tell)

    def _mark(self, beat: Beat) -> str | None:
        now, slow = beat.at_s, None
        for role, call in beat.moved:
            if call is not None and role in self.roles:
                gap = max(0.0, now - self.roles[role] - self._span_s)
                slow = slow or self._slow(f"{role}.{call}", gap, now, self.learned.calls.get(f"{role}.{call}"))
                if not self.is_hung:
                    self.learned.calls.setdefault(f"{role}.{call}", Gaps()).add(gap)
        moved = {*(role for role, _ in beat.moved), *beat.counted}
        self._lasting = frozenset(pair for pair in self._lasting if pair[0] not in moved)
        self.roles.update(dict.fromkeys(moved, now))
        stepped = beat.step is not None and (self.learned.step is None or beat.step > self.learned.step)
        if stepped:
            if self._step_s is not None:
                slow = slow or self._slow("a step", now - self._step_s, now, self.learned.steps)
                if not self.is_hung:
                    self.learned.steps.add(now - self._step_s)
            self._step_s, self.learned.step = now, beat.step
            self.roles = dict.fromkeys(self.roles, now)  # a step is made by all
        if (stepped or beat.moved) and not self.is_hung:
            self.learned.job.add(now - self._mark_s - self._span_s)
        shows_calls = any(self.learned.knows(role) for role in self.roles)
        # a run within one endless call that logs nothing shows itself by its rhythm only
        if stepped or beat.moved or beat.appeared or beat.counted or (beat.rhythm and not shows_calls and self.learned.steps.count < ENOUGH):
            self._mark_s, self._is_hang_seen = now, False
            self._looks.saw_progress()
        return slow

    def _slow(self, name: str, gap: float, now: float, known: Gaps | None) -> str | None:
        if (
            self.is_hung
            or now < self._slow_until
            or known is None
            or known.count < 8
            or gap < self.limits.floor_s
            or gap < SLOW_FACTOR * known.longest_s
        ):
            return None
        self._slow_until = now + SLOW_REST_S
        return f"{name} took {gap:.0f} s; {usual_text(known)}"

    def _stalls(self, now: float) -> tuple[list[Stall], bool]:
        """What stands still, the whole job first; and whether a call is in progress that may well take its time."""
        age, quiet = now - self._mark_s, now - self._work_s
        calls, patient = self._role_stalls(now)
        in_call = any(self.learned.knows(role) for role, _ in self._calls)
        carried = any(self._carries(role, now) for role in self._carried)
        alone = not in_call and self._step_s is None and age >= patience_s(self.learned.job, self.limits)
        names = [f"{role}.{call}" for role, call in self._calls]
        seen = max((g.look_s(self.limits) for n in names if (g := self.learned.calls.get(n))), default=0.0)
        known = max((g.look_s(self.limits) for n in names if (g := self.learned.of_call(n, self.limits))), default=0.0)
        job_look = self.limits.look_s + self._interval_s if self.learned.job.count < ENOUGH else self.learned.job.look_s(self.limits)
        stalls = [
            Stall(
                name="quiet",
                age_s=quiet,
                look_s=max(known, self.learned.quiet.look_s(self.limits)),
                usual_s=self.learned.quiet.longest_s,
                reason=f"for {quiet:.0f} s every process rested, or spun on a core as waits do; the last sign of progress is {age:.0f} s old",
            ),
            Stall(
                name="job",
                age_s=age,
                look_s=max(seen, job_look),
                usual_s=self.learned.job.longest_s,
                reason=f"no Ray call has begun or ended for {age:.0f} s",
                overdue=alone and not carried,
                excused=alone and carried,
            ),
        ]
        step = self._step_stall(now, in_call)
        return [*stalls, *calls, *([step] if step is not None else [])], patient

    def _role_stalls(self, now: float) -> tuple[list[Stall], bool]:
        found, patient = [], False
        for role, call in self._calls:
            if not self.learned.knows(role):
                continue
            name, age = f"{role}.{call}", now - self.roles[role]
            gaps = self.learned.of_call(name, self.limits) if (role, call) in self._lasting else self.learned.calls.get(name)
            limit = patience_s(gaps, self.limits)
            carries = self._carries(role, now) and age < self.limits.ceiling_s
            text = f"{name} has made no progress for {age:.0f} s{', but it moves bytes' if carries else ''}; {usual_text(gaps)}"
            if age >= limit - AHEAD_S:
                usual_s = gaps.longest_s if gaps is not None else 0.0
                found.append(
                    Stall(
                        name=name,
                        age_s=age,
                        look_s=limit,
                        reason=text,
                        role=role,
                        overdue=age >= limit and not carries,
                        excused=age >= limit and carries,
                        usual_s=usual_s,
                    )
                )
            if age >= limit:
                patient |= carries
            elif age >= self.limits.floor_s or gaps is None or gaps.count < ENOUGH:
                patient = True
        return found, patient

    def _step_stall(self, now: float, in_call: bool) -> Stall | None:
        """No new step for long, not counting the time in which a call was in progress that may take its time."""
        if self._step_s is None or self.learned.steps.count < ENOUGH:
            return None
        age = now - max(self._step_s, self._patient_s)
        limit = patience_s(self.learned.steps, self.limits, is_hang_seen=self._is_hang_seen)
        if not in_call:
            limit = max(limit, (SEEN_FLOORS if self._is_hang_seen else CHECKPOINT_FLOORS) * self.limits.floor_s)
        text = f"no new step for {now - self._step_s:.0f} s; {usual_text(self.learned.steps)}"
        if age < limit - AHEAD_S:
            return None
        return Stall(name="steps", age_s=age, look_s=limit, reason=text, overdue=age >= limit, usual_s=self.learned.steps.longest_s)

    def _carries(self, role: str, now: float) -> bool:
        return now - self._carried.get(role, -math.inf) <= CARRIES_S
