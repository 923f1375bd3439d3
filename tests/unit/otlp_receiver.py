"""A small collector: takes OTLP over HTTP (protobuf, gzip) as the specification has it."""

from __future__ import annotations

import gzip
import http.server
import threading
from typing import Any

from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

KINDS: dict[str, tuple[Any, Any]] = {
    "/v1/traces": (trace_service_pb2.ExportTraceServiceRequest, trace_service_pb2.ExportTraceServiceResponse),
    "/v1/metrics": (metrics_service_pb2.ExportMetricsServiceRequest, metrics_service_pb2.ExportMetricsServiceResponse),
    "/v1/logs": (logs_service_pb2.ExportLogsServiceRequest, logs_service_pb2.ExportLogsServiceResponse),
}


class OtlpReceiver:
    """``with OtlpReceiver() as receiver: ... receiver.url``; `fail` answers of 503 come first."""

    def __init__(self, fail: int = 0) -> None:
        self.requests: list[tuple[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        receiver = self
        left = [fail]

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                if left[0]:
                    left[0] -= 1
                    self.send_response(503)
                    self.end_headers()
                    return
                request, response = KINDS[self.path]
                message = request()
                message.ParseFromString(body)
                receiver.headers.append({k.lower(): v for k, v in self.headers.items()})
                receiver.requests.append((self.path, message))
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.end_headers()
                self.wfile.write(response().SerializeToString())

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> OtlpReceiver:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def spans(self) -> list[Any]:
        return [s for p, r in self.requests if p == "/v1/traces" for rs in r.resource_spans for ss in rs.scope_spans for s in ss.spans]

    def logs(self) -> list[Any]:
        return [s for p, r in self.requests if p == "/v1/logs" for rs in r.resource_logs for ss in rs.scope_logs for s in ss.log_records]

    def metrics(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for path, request in self.requests:
            if path == "/v1/metrics":
                for rm in request.resource_metrics:
                    for sm in rm.scope_metrics:
                        for metric in sm.metrics:
                            found.setdefault(metric.name, []).extend(metric.gauge.data_points)
        return found


def attributes(item: Any) -> dict[str, Any]:
    """Attributes of a span, record or data point as plain values."""

    def plain(value: Any) -> Any:
        kind = value.WhichOneof("value")
        return [plain(v) for v in value.array_value.values] if kind == "array_value" else getattr(value, kind)

    return {a.key: plain(a.value) for a in item.attributes}
