"""What the companion counts and measures, for metrics.

Names and units follow OpenTelemetry's semantic conventions, so that Prometheus sees base units and its own suffixes (``_seconds``, ``_bytes``,
``_ratio``, ``_total``). An attribute with few values each: who is accused is the only name of a process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ray_rl_debug.metrics.model import MetricsReport
from ray_rl_debug.model.report import Certainty, State
from ray_rl_debug.watch.closer_look import Look
from ray_rl_debug.watch.history import Event
from ray_rl_debug.watch.live import RoleLine
from ray_rl_debug.watch.signals import GpuSign

Values = list[tuple[float, dict[str, str]]]
LOOK_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
"""Boundaries of the histogram of looks."""
LOOK = "rayrl.look.duration"
KINDS = ("look", "verdict", "slow", "learning", "recovered")
"""Of events that are counted; all begin at zero, so that the first one is an increase."""


class Numbers:
    """The state that gauges show, and the counters. One for each `Telemetry`."""

    def __init__(self, meter: Any) -> None:
        self._progress: dict[str, tuple[tuple[RoleLine, ...], float, int | None]] = {}
        self._verdicts: dict[str, dict[str, str]] = {}
        self._gpus: dict[tuple[str, int], GpuSign] = {}
        self._nodes: tuple[int, int] | None = None
        self._learning: MetricsReport | None = None
        self._events: Counter[tuple[str, str]] = Counter()
        self._make(meter)
        self._looks = meter.create_histogram(LOOK, "s", "Time that a closer look took")

    def progress(self, job: str, roles: Iterable[RoleLine], age_s: float, step: int | None) -> None:
        self._progress[job] = (tuple(roles), age_s, step)

    def gpus(self, gpus: Mapping[tuple[str, int], GpuSign]) -> None:
        self._gpus = dict(gpus)

    def nodes(self, seen: int, silent: int) -> None:
        self._nodes = (seen, silent)

    def learning(self, report: MetricsReport) -> None:
        self._learning = report

    def forget(self, job: str) -> None:
        self._progress.pop(job, None)
        self._verdicts.pop(job, None)

    def event(self, job: str, event: Event) -> None:
        """Counted; a recovery ends the verdict."""
        self._count(job, event.kind)
        if event.kind == "recovered":
            self._verdicts.pop(job, None)

    def look(self, job: str, look: Look, event: Event) -> None:
        """Counted and measured; a verdict that people were told holds until the job recovers or ends."""
        self._count(job, event.kind)
        self._looks.record(look.took_s, {"ray.job.id": job})
        if event.kind == "verdict":
            self._verdicts[job] = _verdict(look)

    def _count(self, job: str, kind: str) -> None:
        if kind in KINDS:
            self._events[job, kind] += 1

    def _make(self, meter: Any) -> None:
        def observed(create: Any, name: str, unit: str, description: str, values: Any) -> None:
            from opentelemetry.metrics import CallbackOptions, Observation

            def observe(_: CallbackOptions) -> Iterable[Observation]:
                return [Observation(value, attributes) for value, attributes in values()]

            create(name, [observe], unit, description)

        gauge, counter = meter.create_observable_gauge, meter.create_observable_counter
        observed(gauge, "rayrl.hang", "", "1 while people are told that the job hangs, else 0", self._hangs)
        observed(gauge, "rayrl.verdict", "", "1 for the verdict that holds: rule, cause and who is accused", self._held)
        observed(counter, "rayrl.events", "{event}", "Looks, verdicts, slow calls, findings about learning, recoveries", self._counted)
        observed(gauge, "rayrl.progress.age", "s", "Time since the last progress of the job", self._ages)
        observed(gauge, "rayrl.role.progress.age", "s", "Time since the last progress of a role", self._role_ages)
        observed(gauge, "rayrl.ranks", "{rank}", "Processes by role and state", self._ranks)
        observed(gauge, "rayrl.step", "{step}", "Step of the run, where its log tells", self._steps)
        observed(gauge, "rayrl.nodes", "{node}", "Nodes that the companion hears, and silent ones", self._heard)
        observed(gauge, "rayrl.learning.findings", "{finding}", "Findings about the metrics of the run", self._findings)
        observed(gauge, "rayrl.learning.metric", "", "Last value of a metric that a rule knows, in the metric's own unit", self._metrics)
        observed(gauge, "hw.gpu.utilization", "1", "Share of time with a kernel", lambda: self._gpu("utilization"))
        observed(gauge, "hw.gpu.memory.usage", "By", "GPU memory in use", lambda: self._gpu("memory_bytes"))
        observed(gauge, "hw.power", "W", "Power draw", lambda: self._gpu("power_watts"))

    def _jobs(self) -> list[tuple[str, tuple[tuple[RoleLine, ...], float, int | None]]]:
        return list(self._progress.items())

    def _hangs(self) -> Values:
        held = dict(self._verdicts)
        jobs = {*held, *(job for job, _ in self._jobs())}
        return [(float(held.get(job, {}).get("rayrl.state") == State.HANG.value), {"ray.job.id": job}) for job in sorted(jobs)]

    def _held(self) -> Values:
        return [(1.0, {"ray.job.id": job, **verdict}) for job, verdict in list(self._verdicts.items())]

    def _counted(self) -> Values:
        jobs = {*(job for job, _ in self._jobs()), *(job for job, _ in list(self._events))}
        return [(self._events[job, kind], {"ray.job.id": job, "rayrl.kind": kind}) for job in sorted(jobs) for kind in KINDS]

    def _ages(self) -> Values:
        return [(age, {"ray.job.id": job}) for job, (_, age, _) in self._jobs()]

    def _role_ages(self) -> Values:
        return [(r.age_s, {"ray.job.id": job, "rayrl.role": r.role}) for job, (roles, _, _) in self._jobs() for r in roles]

    def _steps(self) -> Values:
        return [(step, {"ray.job.id": job}) for job, (_, _, step) in self._jobs() if step is not None]

    def _ranks(self) -> Values:
        found: Values = []
        for job, (roles, _, _) in self._jobs():
            for r in roles:
                base = {"ray.job.id": job, "rayrl.role": r.role}
                found += [(r.working, {**base, "rayrl.state": "working"}), (r.ranks - r.working, {**base, "rayrl.state": "resting"})]
        return found

    def _heard(self) -> Values:
        return [] if self._nodes is None else [(n, {"rayrl.state": s}) for n, s in zip(self._nodes, ("heard", "silent"), strict=True)]

    def _findings(self) -> Values:
        if self._learning is None:
            return []
        counts = Counter(f.certainty.value for f in self._learning.findings if f.certainty is not None)
        return [(counts[c.value], {"rayrl.certainty": c.value}) for c in Certainty]

    def _metrics(self) -> Values:
        series = self._learning.series if self._learning is not None else ()
        return [(s.last, {"rayrl.metric": s.name, "rayrl.quantity": s.quantity}) for s in series if s.last is not None and s.quantity is not None]

    def _gpu(self, field: str) -> Values:
        values = ((getattr(gpu, field), node, index) for (node, index), gpu in self._gpus.items())
        return [(v, {"hw.id": f"{node}/gpu{index}", "hw.type": "gpu", "host.name": node}) for v, node, index in values if v is not None]


def _verdict(look: Look) -> dict[str, str]:
    """Attributes of a verdict; all are there, empty where nobody is accused, so that a series keeps its labels."""
    verdict, best = look.report.verdict, next((f for f in look.report.findings if f.root), None)
    who = best.who[0].label if best is not None and best.who else ""
    return {
        "rayrl.state": verdict.state.value,
        "rayrl.certainty": verdict.certainty.value,
        "rayrl.rule": best.id if best is not None else "",
        "rayrl.cause": best.cause.value if best is not None else "",
        "rayrl.who": who,
    }
