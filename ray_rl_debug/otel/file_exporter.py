"""OTLP-JSON lines in a file, the form that the OpenTelemetry collector's ``otlpjsonfile`` receiver reads."""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

MAX_BYTES = 64 << 20
"""Then the file begins again; what it held is kept beside it once, as ``.1``."""
_IDS = frozenset({"traceId", "spanId", "parentSpanId"})


class JsonLines:
    """Appends messages; a full disk loses them and nothing else."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def put(self, message: Any) -> bool:
        """Was it written?"""
        line = json.dumps(as_otlp_json(message), separators=(",", ":")) + "\n"
        with self._lock:
            try:
                if self._path.exists() and self._path.stat().st_size > MAX_BYTES:
                    self._path.replace(self._path.with_name(self._path.name + ".1"))
                self._path.parent.mkdir(parents=True, exist_ok=True)
                # readable by its owner alone, as all our files
                with open(self._path, "a", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
                    f.write(line)
            except OSError:
                return False
        return True


def as_otlp_json(message: Any) -> Any:
    """Protobuf's own JSON with the differences OTLP asks for: ids in hex, enumerations as numbers."""
    from google.protobuf.json_format import MessageToDict

    return _with_hex_ids(MessageToDict(message, use_integers_for_enums=True))


def _with_hex_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: base64.b64decode(v).hex() if k in _IDS and isinstance(v, str) else _with_hex_ids(v) for k, v in value.items()}
    return [_with_hex_ids(v) for v in value] if isinstance(value, list) else value


class FileSpans(SpanExporter):
    def __init__(self, lines: JsonLines) -> None:
        self._lines = lines

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

        return SpanExportResult.SUCCESS if self._lines.put(encode_spans(spans)) else SpanExportResult.FAILURE


class FileMetrics(MetricExporter):
    def __init__(self, lines: JsonLines) -> None:
        super().__init__()
        self._lines = lines

    def export(self, metrics_data: Any, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
        from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics

        return MetricExportResult.SUCCESS if self._lines.put(encode_metrics(metrics_data)) else MetricExportResult.FAILURE

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        pass


def file_logs(lines: JsonLines) -> Any:
    """An exporter of log records; its base class was renamed between versions of the SDK."""
    from opentelemetry.sdk._logs import export

    base: Any = getattr(export, "LogRecordExporter", None) or getattr(export, "LogExporter", None)
    result: Any = getattr(export, "LogRecordExportResult", None) or getattr(export, "LogExportResult", None)

    class FileLogs(base):  # type: ignore[misc]
        def export(self, batch: Sequence[Any]) -> Any:
            from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs

            return result.SUCCESS if lines.put(encode_logs(batch)) else result.FAILURE

        def shutdown(self) -> None:
            pass

        def force_flush(self, timeout_millis: float = 10_000) -> bool:
            return True

    return FileLogs()
