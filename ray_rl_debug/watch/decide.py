"""When has a run stopped? Pure: beats in, decisions out; nothing is read here, neither clock nor file.

Every role (an actor class) has a *progress age*: the time since one of its Ray calls began or ended or a step number grew. How long a call of a
name lasts is learned from the run itself. Two questions are kept apart:

*look*: is it worth a closer look (a snapshot)? Asked early, after some seconds, and again ever more rarely while nothing changes.
*declared*: would a stall of this age be out of the ordinary? Only then may people be woken. A call that was never seen to end (a first step
that compiles, a first validation, a first checkpoint) gets `Limits.first_s`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ray_rl_debug.snapshot import TaskHistory
from ray_rl_debug.watch.beats import Beat

KEPT_GAPS = 64
"""Per call: how many of its last durations decide what is usual."""
WARM_UP_RATIO = 5.0
"""A first duration that is so many times all later ones was the warm-up (compilation, caches)."""
SLOW_FACTOR = 3.0


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds."""

    floor_s: float = 10.0
    """A stall is never declared earlier."""
    ceiling_s: float = 1800.0
    """and never later."""
    first_s: float = 180.0
    """For a call that has not ended before."""
    look_s: float = 7.0
    """A closer look is never taken earlier."""
    look_again: float = 2.0
    """Each further look during the same stall waits this much longer than the last one."""
    look_rest_s: float = 20.0
    """Between two looks that found nothing."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What one beat leads to."""

    look: bool = False
    declared: bool = False
    """The stall is out of the ordinary for this run."""
    age_s: float = 0.0
    """Since the last progress of what stands still."""
    role: str | None = None
    """The role that stands still; None when all do."""
    call: str | None = None
    reason: str = ""
    slow: str | None = None
    """A slow-down that is over: progress came, much later than usual."""


class Gaps(msgspec.Struct):
    """How long one Ray call lasted, or how long a job was without progress."""

    recent: list[float] = []
    count: int = 0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.recent = [*self.recent, round(max(0.0, seconds), 2)][-KEPT_GAPS:]
        rest = self.recent[1:]
        if len(rest) == 3 and self.recent[0] > WARM_UP_RATIO * max(*rest, 1.0):
            self.recent = rest

    @property
    def longest_s(self) -> float:
        return max(self.recent, default=0.0)


class Learned(msgspec.Struct):
    """What a run has taught; kept on disk."""

    calls: dict[str, Gaps] = {}
    """By ``role.call``."""
    job: Gaps = msgspec.field(default_factory=Gaps)
    step: int | None = None
    step_s: list[float] = []
    """Durations of the last steps, where a log tells step numbers."""


def patience_s(gaps: Gaps | None, limits: Limits) -> float:
    """How old a stall must be to be out of the ordinary: a multiple of the longest seen, smaller the more was seen."""
    if gaps is None or gaps.count < 3:
        return min(limits.ceiling_s, max(limits.first_s, 3.0 * gaps.longest_s if gaps else 0.0))
    factor = 6.0 if gaps.count < 8 else 4.0 if gaps.count < 20 else 2.5
    return min(limits.ceiling_s, max(limits.floor_s, factor * gaps.longest_s))


class Progress:
    """One job over time."""

    def __init__(self, limits: Limits, learned: Learned | None = None, *, interval_s: float = 2.0) -> None:
        self.limits = limits
        self.learned = learned or Learned()
        self.roles: dict[str, float] = {}
        """When each role made progress last."""
        self.marks: dict[str, int] = {}
        self._interval_s = interval_s
        self._mark_s: float | None = None
        self._work_s: float | None = None
        self._step_at: float | None = None
        self._next_look_s = limits.look_s
        self._rest_until = 0.0
        self._calls: tuple[tuple[str, str], ...] = ()

    def feed(self, beat: Beat) -> Decision:
        """Take the next beat."""
        now = beat.at_s
        if self._mark_s is None or self._work_s is None:
            self._mark_s = self._work_s = now
        slow = self._mark(beat)
        if beat.working or beat.rhythm or beat.gpus_work:
            self._work_s = now
        for role, _ in beat.calls:
            self.roles.setdefault(role, now)
        self._calls = beat.calls
        return self.decide(now, slow)

    def teach(self, history: Iterable[TaskHistory]) -> None:
        """What Ray's own table knows of finished calls; a reading every two seconds misses short ones."""
        for known in history:
            gaps = self.learned.calls.setdefault(known.name, Gaps())
            if known.count > gaps.count:
                gaps.count = known.count
                gaps.recent = [*gaps.recent, round(known.longest_s, 2)][-KEPT_GAPS:]

    def age_s(self, now: float) -> float:
        """Since any progress of this job."""
        return now - self._mark_s if self._mark_s is not None else 0.0

    def moved(self, now: float) -> None:
        """A closer look saw progress that the cheap signs do not show."""
        self._mark_s = self._work_s = now
        self.roles = dict.fromkeys(self.roles, now)
        self._rest_until = now + 2 * self.limits.look_rest_s
        self._next_look_s = max(self.limits.look_s, min(self._next_look_s, self.limits.ceiling_s))

    def looked(self, now: float, *, rest_s: float) -> None:
        """A closer look was taken: it is not repeated for `rest_s`, and then ever more rarely."""
        self._next_look_s = max(self.age_s(now), self._next_look_s) * self.limits.look_again
        self._rest_until = max(self._rest_until, now + rest_s)

    def _mark(self, beat: Beat) -> str | None:
        now, slow = beat.at_s, None
        moved = {role for role, _ in beat.moved}
        for role, call in beat.moved:
            if call is not None and role in self.roles:
                gap = max(0.0, now - self.roles[role] - self._interval_s)
                slow = slow or self._slow(f"{role}.{call}", gap)
                self.learned.calls.setdefault(f"{role}.{call}", Gaps()).add(gap)
        for role in moved:
            self.roles[role] = now
            self.marks[role] = self.marks.get(role, 0) + 1
        if moved or beat.appeared:
            assert self._mark_s is not None
            if moved:
                self.learned.job.add(max(0.0, now - self._mark_s - self._interval_s))
            self._mark_s = now
            self._next_look_s = max(self.limits.look_s, min(self.limits.ceiling_s, 1.5 * self._usual_s()))
        elif beat.rhythm and not self._is_marking():
            self._mark_s = now  # a run within one endless call shows itself by its rhythm only
        if beat.step is not None and (self.learned.step is None or beat.step > self.learned.step):
            if self._step_at is not None and self.learned.step is not None:
                each = (now - self._step_at) / (beat.step - self.learned.step)
                self.learned.step_s = [*self.learned.step_s, round(each, 2)][-KEPT_GAPS:]
            self._step_at, self.learned.step = now, beat.step
        return slow

    def _slow(self, name: str, gap: float) -> str | None:
        known = self.learned.calls.get(name)
        if known is None or known.count < 8 or gap < self.limits.floor_s or gap < SLOW_FACTOR * known.longest_s:
            return None
        return f"{name} took {gap:.0f} s; the longest of its last {len(known.recent)} took {known.longest_s:.1f} s"

    def _is_marking(self, role: str | None = None) -> bool:
        """Does this role, or any, show its progress by calls that end?"""
        if role is None:
            return sum(self.marks.values()) >= 3
        return self.marks.get(role, 0) >= 3 or any(n.startswith(f"{role}.") and g.count >= 3 for n, g in self.learned.calls.items())

    def _usual_s(self) -> float:
        return self.learned.job.longest_s if self.learned.job.count >= 3 else 0.0

    def decide(self, now: float, slow: str | None = None) -> Decision:
        """The state at this moment."""
        if self._mark_s is None or self._work_s is None:
            return Decision()
        age, quiet = now - self._mark_s, now - max(self._mark_s, self._work_s)
        overdue, patient = self._overdue(now)
        if overdue:
            role, call, role_age, usual = max(overdue, key=lambda o: o[2])
            declared = not patient or age >= self.limits.ceiling_s
            text = f"{role}.{call} without progress for {role_age:.0f} s; {_usual(usual)}"
            return self._answer(now, role_age, declared, text, role=role, call=call, slow=slow)
        declared = not self._in_call() and age >= patience_s(self.learned.job, self.limits)
        if quiet >= self.limits.look_s:
            return self._answer(now, age, declared, f"nobody has worked for {quiet:.0f} s, the last progress was {age:.0f} s ago", slow=slow)
        return self._answer(now, age, declared, f"no Ray call has begun or ended for {age:.0f} s", slow=slow)

    def _in_call(self) -> list[tuple[str, str]]:
        """Calls in progress of roles that are known to make progress by calls."""
        return [(role, call) for role, call in self._calls if self._is_marking(role)]

    def _overdue(self, now: float) -> tuple[list[tuple[str, str, float, Gaps | None]], bool]:
        """Calls that last too long for this run, and whether another one may still take its time."""
        found, patient = [], False
        for role, call in self._in_call():
            gaps, age = self.learned.calls.get(f"{role}.{call}"), now - self.roles[role]
            if age >= patience_s(gaps, self.limits):
                found.append((role, call, age, gaps))
            elif age >= self.limits.floor_s:
                patient = True
        return found, patient

    def _answer(
        self, now: float, age: float, declared: bool, reason: str, *, role: str | None = None, call: str | None = None, slow: str | None = None
    ) -> Decision:
        look = age >= self._next_look_s and now >= self._rest_until
        return Decision(look=look, declared=declared, age_s=age, role=role, call=call, reason=reason, slow=slow)


def _usual(gaps: Gaps | None) -> str:
    return f"the longest of its last {len(gaps.recent)} calls took {gaps.longest_s:.0f} s" if gaps and gaps.recent else "it was never seen to end"


def merge_learned(a: Learned, b: Learned) -> Learned:
    """What two companions learned of the same run."""
    calls = {name: _joined(x for x in (a.calls.get(name), b.calls.get(name)) if x) for name in {*a.calls, *b.calls}}
    return Learned(calls=calls, job=_joined((a.job, b.job)), step=max((s for s in (a.step, b.step) if s is not None), default=None), step_s=b.step_s)


def _joined(gaps: Iterable[Gaps]) -> Gaps:
    all_gaps = list(gaps)
    return Gaps(recent=[s for g in all_gaps for s in g.recent][-KEPT_GAPS:], count=sum(g.count for g in all_gaps))
