"""Is the run that is watched learning? A child process reads and judges its metrics now and then; the watch only hears what is new.

A process of its own: a log on a hung disk, a gigabyte of metrics or a test that takes seconds hold up nothing here.
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ray_rl_debug.bounded.own_python import own_module
from ray_rl_debug.bounded.programs import Finished, run_bounded
from ray_rl_debug.metric_sources.follow import News
from ray_rl_debug.metrics.model import Judgement, MetricsReport, State
from ray_rl_debug.model.report import Certainty

EVERY_S = 60.0
CALM = 200.0
"""Times the CPU time of a look that is waited at least: half a percent of one core. On a busy machine a look takes longer, and costs no more."""
LOOK_S = 120.0


def children_cpu_s() -> float:
    """CPU time of all children that have ended; what others used meanwhile makes us wait longer, never shorter."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Something new about the learning."""

    text: str
    finding: Judgement | None = None
    """What is wrong; None for what is good again, and for trouble."""
    is_trouble: bool = False


class Learning:
    """Judges one source again and again.

    Args:
        source: what `rayrl-debug metrics` reads.
        options: of it, such as ``--threshold``.
    """

    def __init__(
        self,
        source: Path,
        options: Sequence[str] = (),
        *,
        clock: Callable[[], float],
        run: Callable[[Sequence[str], float], Finished] = run_bounded,
        cpu: Callable[[], float] = children_cpu_s,
    ) -> None:
        self._command = own_module("ray_rl_debug", "metrics", str(source), "--json", "--quiet", *options)
        self._clock, self._run, self._cpu = clock, run, cpu
        self._next_s = float("-inf")
        self._cost_s = 0.0
        self._thread: threading.Thread | None = None
        self._answer: MetricsReport | str | None = None
        self._news = News()
        self._trouble: str | None = None
        self.report: MetricsReport | None = None
        """The last one."""

    def poll(self) -> list[Told]:
        """What is new since the last call; starts the next look when it is time. Never waits."""
        now = self._clock()
        if self._thread is not None:
            if self._thread.is_alive():
                return []
            self._thread = None
            self._next_s = now + max(EVERY_S, CALM * self._cost_s)
            return self._take()
        if now >= self._next_s:
            self._thread = threading.Thread(target=self._look, daemon=True, name="learning")
            self._thread.start()
        return []

    def line(self) -> str | None:
        """``learning: healthy, 26 judgements are good, over 140 steps``."""
        if self.report is None:
            return None
        verdict = self.report.verdict
        return f"learning: {verdict.state.value}, {verdict.summary}"

    def _look(self) -> None:
        before = self._cpu()
        try:
            done = self._run(self._command, LOOK_S)
        except OSError as e:
            self._answer = f"cannot be started: {e.strerror}"
            return
        finally:
            self._cost_s = self._cpu() - before
        try:
            self._answer = msgspec.json.decode(done.out, type=MetricsReport)
        except msgspec.DecodeError:
            self._answer = _why(done)

    def _take(self) -> list[Told]:
        answer = self._answer
        if not isinstance(answer, MetricsReport):
            again, self._trouble = answer == self._trouble, answer
            return [] if again or answer is None else [Told(text=f"the metrics cannot be judged: {answer}", is_trouble=True)]
        self._trouble, self.report = None, answer
        if answer.verdict.state is State.UNKNOWN:
            return []
        new, over = self._news.take(answer)
        told = [Told(text=f"learning: {f.summary} ({f.id})", finding=f) for f in new if f.certainty is not Certainty.POSSIBLE]
        return told + [Told(text=f"learning: {metric} is good again ({rule})") for rule, metric in over]


def _why(done: Finished) -> str:
    if done.timed_out:
        return f"no answer within {LOOK_S:.0f} s"
    lines = done.err.decode("utf-8", "replace").splitlines()
    return next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), f"the command ended with {done.code}")
