"""What the companion tells OpenTelemetry. Never raises, never waits, ends within seconds; an endpoint that is dead costs nothing but its messages."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ray_rl_debug import __version__
from ray_rl_debug.metrics.model import MetricsReport
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.otel.exporters import make_exporter, prometheus_reader
from ray_rl_debug.otel.file_exporter import JsonLines
from ray_rl_debug.otel.settings import Settings
from ray_rl_debug.watch.closer_look import Look
from ray_rl_debug.watch.history import Event
from ray_rl_debug.watch.live import RoleLine
from ray_rl_debug.watch.signals import GpuSign

CLOSE_S = 6.0
MAX_PROCESS_SPANS = 200
_SEVERITY = {"verdict": (17, "ERROR"), "look": (13, "WARN"), "slow": (13, "WARN"), "learning": (13, "WARN"), "recovered": (9, "INFO")}


class Telemetry:
    """Three providers of our own. Raises `MissingExporterError` when an exporter is not installed, or its port is taken."""

    def __init__(self, settings: Settings) -> None:
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        _quieten()
        lines = JsonLines(settings.file) if settings.file is not None else None
        resource = Resource.create({"service.name": "rayrl-debug", "service.version": __version__})
        self._server: Any = None
        self._progress: dict[str, tuple[tuple[RoleLine, ...], float, int | None]] = {}
        self._gpus: dict[tuple[str, int], GpuSign] = {}
        self._learning: MetricsReport | None = None
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        for kind in settings.exporters.get("traces", ()):
            self._tracers.add_span_processor(BatchSpanProcessor(make_exporter(kind, "traces", settings, lines), schedule_delay_millis=1000))
        self._loggers = LoggerProvider(resource=resource, shutdown_on_exit=False)
        for kind in settings.exporters.get("logs", ()):
            exporter = make_exporter(kind, "logs", settings, lines)
            self._loggers.add_log_record_processor(BatchLogRecordProcessor(exporter, schedule_delay_millis=1000))
        readers: list[Any] = []
        for kind in settings.exporters.get("metrics", ()):
            if kind == "prometheus":
                reader, self._server = prometheus_reader(settings)
                readers.append(reader)
            else:
                exporter = make_exporter(kind, "metrics", settings, lines)
                readers.append(PeriodicExportingMetricReader(exporter, settings.interval_s * 1000, settings.timeout_s * 1000))
        self._meters = MeterProvider(metric_readers=readers, resource=resource, shutdown_on_exit=False)
        self._tracer = self._tracers.get_tracer("rayrl-debug", __version__)
        self._logger = self._loggers.get_logger("rayrl-debug", __version__)
        self._make_gauges()

    def progress(self, job: str, roles: Iterable[RoleLine], age_s: float, step: int | None) -> None:
        """The state of one job, for the gauges."""
        self._progress[job] = (tuple(roles), age_s, step)

    def gpus(self, gpus: Mapping[tuple[str, int], GpuSign]) -> None:
        self._gpus = dict(gpus)

    def learning(self, report: MetricsReport) -> None:
        """What the metrics of the run say, for the gauges."""
        self._learning = report

    def forget(self, job: str) -> None:
        self._progress.pop(job, None)

    def look(self, job: str, look: Look, event: Event, *, began_s: float) -> None:
        """A trace of a snapshot, node > process, and its verdict as a log record in the same trace."""
        try:
            self._look(job, look, event, began_s)
        except Exception:  # noqa: BLE001 telemetry must not cost the watch
            return

    def event(self, job: str, event: Event) -> None:
        """A log record."""
        try:
            self._emit(f"rayrl.{event.kind}", event.kind, event.text, {"ray.job.id": job}, event.time_s, None)
        except Exception:  # noqa: BLE001 telemetry must not cost the watch
            return

    def close(self, deadline_s: float = CLOSE_S) -> None:
        """Export what is left, within `deadline_s`."""
        # only shutdown: a flush before it would export the gauges twice
        threads = [threading.Thread(target=p.shutdown, daemon=True) for p in (self._tracers, self._loggers, self._meters)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(deadline_s / len(threads))
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def _look(self, job: str, look: Look, event: Event, began_s: float) -> None:
        from opentelemetry import trace

        report = look.report
        verdict = {
            "rayrl.state": report.verdict.state.value,
            "rayrl.certainty": report.verdict.certainty.value,
            "rayrl.summary": report.verdict.summary,
            "ray.job.id": job,
            **({"rayrl.folder": str(look.folder)} if look.folder else {}),
            **({"rayrl.progress.age": event.age_s} if event.age_s is not None else {}),
        }
        root = self._tracer.start_span("rayrl.snapshot", start_time=_ns(began_s), attributes=verdict)
        context = trace.set_span_in_context(root)
        accused = {(w.node, w.pid) for f in report.findings if f.root for w in f.who}
        ordered = sorted(report.processes, key=lambda p: (p.who.node, p.who.pid) not in accused)[:MAX_PROCESS_SPANS]
        for node in look.snapshot.nodes:
            start, end = node.started_time_s, node.started_time_s + (node.took_s or node.window_s)
            attributes: dict[str, Any] = {
                "host.name": node.name,
                **({"ray.node.id": node.node_id} if node.node_id else {}),
                "rayrl.gaps": len(node.gaps),
            }
            span = self._tracer.start_span("rayrl.node", context=context, start_time=_ns(start), attributes=attributes)
            inside = trace.set_span_in_context(span)
            for process in ordered:
                if process.who.node == node.name:
                    one = self._tracer.start_span("rayrl.process", context=inside, start_time=_ns(start), attributes=_process(process, accused))
                    one.end(_ns(end))
            span.end(_ns(end))
        root.end(_ns(began_s + look.took_s))
        best = next((f for f in report.findings if f.root), None)
        more = {"rayrl.rule": best.id, "rayrl.cause": best.cause.value, "rayrl.who": [w.label for w in best.who[:32]]} if best else {}
        kind = event.kind if event.kind in _SEVERITY else "look"
        self._emit("rayrl.verdict" if kind == "verdict" else "rayrl.look", kind, report.verdict.summary, {**verdict, **more}, event.time_s, context)

    def _emit(self, name: str, kind: str, body: str, attributes: Mapping[str, Any], time_s: float, context: Any) -> None:
        from opentelemetry._logs import SeverityNumber

        number, text = _SEVERITY.get(kind, (9, "INFO"))
        self._logger.emit(
            timestamp=_ns(time_s),
            context=context,
            severity_number=SeverityNumber(number),
            severity_text=text,
            body=body,
            attributes=dict(attributes),
            event_name=name,
        )

    def _make_gauges(self) -> None:
        from opentelemetry.metrics import CallbackOptions, Observation

        def gauge(name: str, unit: str, description: str, values: Any) -> None:
            def observe(_: CallbackOptions) -> Iterable[Observation]:
                return [Observation(value, attributes) for value, attributes in values()]

            self._meters.get_meter("rayrl-debug", __version__).create_observable_gauge(name, [observe], unit, description)

        gauge("rayrl.progress.age", "s", "Time since the last progress", self._ages)
        gauge("rayrl.ranks", "{rank}", "Processes by role and state", self._ranks)
        gauge(
            "rayrl.step",
            "{step}",
            "Step of the run, where its log tells",
            lambda: [(s, {"ray.job.id": j}) for j, (_, _, s) in self._now() if s is not None],
        )
        gauge("rayrl.learning.findings", "{finding}", "Findings about the metrics of the run", self._findings)
        gauge("rayrl.learning.metric", "1", "Last value of a metric that a rule knows", self._metrics)
        gauge("hw.gpu.utilization", "1", "Share of time with a kernel", lambda: self._gpu("utilization"))
        gauge("hw.gpu.memory.usage", "By", "GPU memory in use", lambda: self._gpu("memory_bytes"))
        gauge("hw.power", "W", "Power draw", lambda: self._gpu("power_watts"))

    def _now(self) -> list[tuple[str, tuple[tuple[RoleLine, ...], float, int | None]]]:
        return list(self._progress.items())

    def _ages(self) -> list[tuple[float, dict[str, str]]]:
        found = [(age, {"ray.job.id": job}) for job, (_, age, _) in self._now()]
        return found + [(r.age_s, {"ray.job.id": job, "rayrl.role": r.role}) for job, (roles, _, _) in self._now() for r in roles]

    def _ranks(self) -> list[tuple[float, dict[str, str]]]:
        found: list[tuple[float, dict[str, str]]] = []
        for job, (roles, _, _) in self._now():
            for r in roles:
                base = {"ray.job.id": job, "rayrl.role": r.role}
                found += [(r.working, {**base, "rayrl.state": "working"}), (r.ranks - r.working, {**base, "rayrl.state": "resting"})]
        return found

    def _findings(self) -> list[tuple[float, dict[str, str]]]:
        if self._learning is None:
            return []
        counts = Counter(f.certainty.value for f in self._learning.findings if f.certainty is not None)
        return [(counts[c.value], {"rayrl.certainty": c.value}) for c in Certainty]

    def _metrics(self) -> list[tuple[float, dict[str, str]]]:
        series = self._learning.series if self._learning is not None else ()
        return [(s.last, {"rayrl.metric": s.name, "rayrl.quantity": s.quantity}) for s in series if s.last is not None and s.quantity is not None]

    def _gpu(self, field: str) -> list[tuple[float, dict[str, str]]]:
        values = ((getattr(gpu, field), node, index) for (node, index), gpu in self._gpus.items())
        return [(v, {"hw.id": f"{node}/gpu{index}", "hw.type": "gpu", "host.name": node}) for v, node, index in values if v is not None]


def _process(process: Any, accused: set[tuple[str | None, int | None]]) -> dict[str, Any]:
    who = process.who
    values = {
        "process.pid": who.pid,
        "rayrl.role": who.role or who.class_,
        "rayrl.rank": who.rank,
        "rayrl.label": who.label,
        "rayrl.phase": process.phase,
        "rayrl.doing": process.doing,
        "rayrl.accused": (who.node, who.pid) in accused,
    }
    return {k: v for k, v in values.items() if v is not None}


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)


def _quieten() -> None:
    """The SDK logs a trace for every failed export; a dead endpoint is the user's affair and said once by us."""
    for name in ("opentelemetry.sdk", "opentelemetry.exporter"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
