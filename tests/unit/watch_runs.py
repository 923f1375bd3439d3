"""Runs that only exist as signs: a schedule of phases in, beats out."""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec

from ray_rl_debug.model.snapshot import TaskHistory
from ray_rl_debug.watch.beats import Beat, Census
from ray_rl_debug.watch.decide import Decision, Progress
from ray_rl_debug.watch.job_watch import REST_S, SUSPECT_S
from ray_rl_debug.watch.learn import Limits
from ray_rl_debug.watch.loop import GOLDEN
from ray_rl_debug.watch.signals import Known, NodeReading, Sign

JOB = "01000000"
INTERVAL_S = 2.0


class Phase(msgspec.Struct, frozen=True):
    """What all ranks do for a while."""

    call: str | None
    """Method in the title; None: idle, the driver works."""
    seconds: float
    cpu: float = 0.5
    step: int | None = None
    """Logged at its end."""


def steps(seconds: Iterator[float], *, checkpoint_every: int = 0, validate_every: int = 0, first_s: float = 0.0, start: int = 1) -> Iterator[Phase]:
    """A PPO loop: rollout, reward, update; now and then a checkpoint or a validation; a first step that compiles for `first_s`."""
    for number, length in enumerate(seconds, start):
        yield Phase("generate_sequences", 0.6 * length)
        yield Phase("compute_rm_score", 0.1 * length, 0.05)
        yield Phase("update_actor", 0.3 * length + (first_s if number == start else 0.0), step=number)
        if checkpoint_every and number % checkpoint_every == 0:
            yield Phase("save_checkpoint", 90.0, 0.01)
        if validate_every and number % validate_every == 0:
            yield Phase("validate", 45.0, 0.3)


def irregular(seed: int, low: float = 1.0, high: float = 60.0) -> Iterator[float]:
    dice = random.Random(seed)
    while True:
        yield dice.uniform(low, high)


class Simulation:
    """Four ranks and a controller, read every two seconds."""

    def __init__(self, phases: Iterator[Phase], *, limits: Limits | None = None, ranks: int = 4, logs: bool = True, poller: bool = False) -> None:
        self.progress = Progress(limits or Limits(), interval_s=INTERVAL_S)
        self.census = Census()
        self.looks: list[tuple[float, Decision]] = []
        self.declared: list[tuple[float, Decision]] = []
        self.slow: list[str] = []
        self._phases, self._ranks, self._logs, self._poller = phases, ranks, logs, poller
        self._phase = next(phases)
        self._until = self._phase.seconds
        self._step: int | None = None
        self._stuck = False
        self.last_progress_s = 0.0
        self.now = 0.0
        self._number = 0
        self._cpu = 0.0
        self._done: dict[str, tuple[int, float]] = {}

    def run(self, seconds: float, *, hang: bool = False, hang_cpu: float = 0.0) -> None:
        """Go on for a while; with `hang` nothing moves any more from now on, the ranks use `hang_cpu`."""
        if hang and not self._stuck:
            self._stuck = True
            self.last_progress_s = self.now
            self._phase = Phase(self._phase.call or "update_actor", 1e9, hang_cpu)
            self._until = float("inf")
        end = self.now + seconds
        while self.now < end:
            self._number += 1
            span_s = self.progress.wait_s * (0.8 + 0.4 * (self._number * GOLDEN % 1.0))
            self.now += span_s
            self._advance(span_s)
            decision = self.progress.feed(self._beat(span_s))
            if decision.slow:
                self.slow.append(decision.slow)
            if decision.look:
                self.looks.append((self.now, decision))
                self.progress.teach(TaskHistory(name=f"WorkerDict.{c}", count=n, longest_s=s) for c, (n, s) in self._done.items())
                decision = self.progress.seen(self.now, is_still=self._stuck, is_hang=self._stuck, is_sure=self._stuck)
                self.progress.looked(self.now, rest_s=SUSPECT_S if self._stuck else REST_S, could_tell=self._stuck)
            if decision.declared:
                self.declared.append((self.now, decision))

    def skip(self, seconds: float) -> None:
        """The run goes on, and nobody looks."""
        self.now += seconds
        self._advance(seconds)

    def detected_after_s(self) -> float:
        """From the last progress to the first look after it."""
        return next(at for at, _ in self.looks if at > self.last_progress_s) - self.last_progress_s

    def declared_after_s(self) -> float:
        return next(at for at, _ in self.declared if at > self.last_progress_s) - self.last_progress_s

    def _advance(self, span_s: float) -> None:
        """Go to `now`; the processor time is that of the whole span, as the kernel counts it."""
        at, spent = self.now - span_s, 0.0
        while self.now >= self._until:
            spent += (self._until - at) * self._phase.cpu
            at = self._until
            if self._phase.step is not None:
                self._step = self._phase.step
            if self._phase.call is not None:
                count, longest = self._done.get(self._phase.call, (0, 0.0))
                self._done[self._phase.call] = (count + 1, max(longest, self._phase.seconds))
            self._phase = next(self._phases)
            self._until += self._phase.seconds
        self._cpu = (spent + (self.now - at) * self._phase.cpu) / span_s

    def _beat(self, span_s: float) -> Beat:
        first = not self.census.seen
        title = f"ray::WorkerDict.{self._phase.call}" if self._phase.call else "ray::WorkerDict"
        known = [Known(pid=100 + r, born=1, kind="ray-worker", ppid=1, title=title, job_id=JOB) for r in range(self._ranks)]
        known.append(Known(pid=50, born=1, kind="ray-worker", ppid=1, title="ray::TaskRunner.run", job_id=JOB))
        signs = [Sign(100 + r, "S", self._cpu, 0.0 if self._stuck else 50.0, title) for r in range(self._ranks)]
        signs.append(Sign(50, "S", 0.01, 1.0, None, self._step if self._logs else None, 0))
        if self._poller:
            asks = "ray::Status.ping" if int(self.now / INTERVAL_S) % 2 else "ray::Status"
            known.append(Known(pid=60, born=1, kind="ray-worker", ppid=1, title=asks, job_id=JOB))
            signs.append(Sign(60, "S", 0.02, 0.0, asks))
        reading = NodeReading(span_s=span_s, signs=tuple(signs), known=tuple(known) if first else None)
        return self.census.beats({"node": reading}, self.now, [JOB])[JOB]
