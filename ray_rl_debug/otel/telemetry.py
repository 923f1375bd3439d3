"""What the companion tells OpenTelemetry. Never raises, never waits, ends within seconds; an endpoint that is dead costs nothing but its messages."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from ray_rl_debug import __version__
from ray_rl_debug.metrics.model import MetricsReport
from ray_rl_debug.otel.exporters import make_exporter, prometheus_reader
from ray_rl_debug.otel.file_exporter import JsonLines
from ray_rl_debug.otel.numbers import LOOK, LOOK_SECONDS, Numbers
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
        from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        _quieten()
        lines = JsonLines(settings.file) if settings.file is not None else None
        resource = Resource.create({"service.name": "rayrl-debug", "service.version": __version__})
        self._server: Any = None
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
        views = [View(instrument_name=LOOK, aggregation=ExplicitBucketHistogramAggregation(LOOK_SECONDS))]
        self._meters = MeterProvider(metric_readers=readers, resource=resource, shutdown_on_exit=False, views=views)
        self._tracer = self._tracers.get_tracer("rayrl-debug", __version__)
        self._logger = self._loggers.get_logger("rayrl-debug", __version__)
        self._numbers = Numbers(self._meters.get_meter("rayrl-debug", __version__))

    def progress(self, job: str, roles: Iterable[RoleLine], age_s: float, step: int | None) -> None:
        """The state of one job, for the gauges."""
        self._numbers.progress(job, roles, age_s, step)

    def gpus(self, gpus: Mapping[tuple[str, int], GpuSign]) -> None:
        self._numbers.gpus(gpus)

    def nodes(self, seen: int, silent: int) -> None:
        """How many nodes were heard in the last reading, and how many are silent."""
        self._numbers.nodes(seen, silent)

    def learning(self, report: MetricsReport) -> None:
        """What the metrics of the run say, for the gauges."""
        self._numbers.learning(report)

    def forget(self, job: str) -> None:
        self._numbers.forget(job)

    def look(self, job: str, look: Look, event: Event, *, began_s: float) -> None:
        """A trace of a snapshot, node > process, and its verdict as a log record in the same trace."""
        try:
            self._numbers.look(job, look, event)
            self._look(job, look, event, began_s)
        except Exception:  # noqa: BLE001 telemetry must not cost the watch
            return

    def event(self, job: str, event: Event) -> None:
        """A log record."""
        try:
            self._numbers.event(job, event)
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
