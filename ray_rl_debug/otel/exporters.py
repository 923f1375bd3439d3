"""The SDK's exporters as the settings ask for them."""

from __future__ import annotations

import importlib
from typing import Any

from ray_rl_debug.model.errors import MissingExporterError
from ray_rl_debug.otel.file_exporter import FileMetrics, FileSpans, JsonLines, file_logs
from ray_rl_debug.otel.settings import Settings

_OTLP = {
    "traces": ("trace_exporter", "OTLPSpanExporter"),
    "metrics": ("metric_exporter", "OTLPMetricExporter"),
    "logs": ("_log_exporter", "OTLPLogExporter"),
}


def make_exporter(kind: str, signal: str, settings: Settings, lines: JsonLines | None) -> Any:
    """One exporter.

    Raises:
        MissingExporterError: its package is not installed.
    """
    if kind == "otlp":
        return _otlp(signal, settings)
    if kind == "file" and lines is not None:
        return {"traces": FileSpans, "metrics": FileMetrics, "logs": file_logs}[signal](lines)
    if signal == "traces":
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter

        return ConsoleSpanExporter()
    if signal == "metrics":
        from opentelemetry.sdk.metrics.export import ConsoleMetricExporter

        return ConsoleMetricExporter()
    from opentelemetry.sdk._logs import export

    found: Any = getattr(export, "ConsoleLogRecordExporter", None) or getattr(export, "ConsoleLogExporter", None)
    return found()


def prometheus_reader(settings: Settings) -> tuple[Any, Any]:
    """A reader that Prometheus can scrape, and what ends its server.

    Raises:
        MissingExporterError: opentelemetry-exporter-prometheus is not installed, or the port is taken.
    """
    assert settings.prometheus is not None
    host, port = settings.prometheus
    try:
        prometheus = importlib.import_module("opentelemetry.exporter.prometheus")
        client = importlib.import_module("prometheus_client")
    except ImportError as e:
        raise MissingExporterError(f"no Prometheus endpoint: {e}", hint="pip install 'ray-rl-debug[prometheus]'") from e
    reader = prometheus.PrometheusMetricReader()
    try:
        server, _ = client.start_http_server(port, addr=host)
    except OSError as e:
        raise MissingExporterError(f"no Prometheus endpoint on {host}:{port}: {e.strerror}", hint="choose another port") from e
    return reader, server


def _otlp(signal: str, settings: Settings) -> Any:
    module, name = _OTLP[signal]
    way = "grpc" if settings.protocols.get(signal) == "grpc" else "http"
    try:
        exporter = getattr(importlib.import_module(f"opentelemetry.exporter.otlp.proto.{way}.{module}"), name)
    except ImportError as e:
        package = f"opentelemetry-exporter-otlp-proto-{way}"
        hint = f"pip install {package}" if way == "grpc" else MissingExporterError.hint
        raise MissingExporterError(f"OTLP over {settings.protocols.get(signal)} needs {package}", hint=hint) from e
    return exporter(timeout=int(settings.timeout_s) or 1)
