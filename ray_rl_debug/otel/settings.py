"""Where telemetry goes, from the standard ``OTEL_*`` variables.

Any OTLP endpoint, or any exporter named, turns it on. The protocol is ``http/protobuf`` unless a variable says ``grpc``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ray_rl_debug.model.errors import UsageError

SIGNALS = ("traces", "metrics", "logs")
DEFAULT_TIMEOUT_S = 5.0
PROMETHEUS_PORT = 9464
_PROTOCOLS = ("http/protobuf", "grpc")
_EXPORTERS = ("otlp", "console", "none", "prometheus")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What is exported how."""

    exporters: dict[str, tuple[str, ...]] = {}
    """By signal: ``otlp``, ``console``, ``file``, ``prometheus``."""
    protocols: dict[str, str] = {}
    file: Path | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    interval_s: float = 15.0
    """Between two exports of the gauges."""
    prometheus: tuple[str, int] | None = None

    @property
    def is_on(self) -> bool:
        return any(self.exporters.values())


def read_settings(env: Mapping[str, str], *, file: Path | None = None, prometheus_port: int | None = None) -> Settings:
    """The settings that an environment and the command line ask for.

    Args:
        env: The environment.
        file: Also write everything as OTLP-JSON lines there.
        prometheus_port: Offer the gauges to Prometheus there.

    Raises:
        UsageError: an exporter or a protocol that we do not have.
    """
    if env.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return Settings()
    exporters: dict[str, tuple[str, ...]] = {}
    protocols: dict[str, str] = {}
    for signal in SIGNALS:
        upper = signal.upper()
        named = env.get(f"OTEL_{upper}_EXPORTER", "").strip().lower()
        has_endpoint = bool(env.get("OTEL_EXPORTER_OTLP_ENDPOINT") or env.get(f"OTEL_EXPORTER_OTLP_{upper}_ENDPOINT"))
        chosen = [e.strip() for e in named.split(",") if e.strip()] or (["otlp"] if has_endpoint else [])
        for one in chosen:
            if one not in _EXPORTERS or (one == "prometheus" and signal != "metrics"):
                raise UsageError(f"OTEL_{upper}_EXPORTER={one} is not supported", hint=f"use: {', '.join(_EXPORTERS)}")
        chosen = [e for e in chosen if e != "none"]
        if file is not None:
            chosen.append("file")
        if signal == "metrics" and prometheus_port is not None and "prometheus" not in chosen:
            chosen.append("prometheus")
        protocol = env.get(f"OTEL_EXPORTER_OTLP_{upper}_PROTOCOL") or env.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
        if "otlp" in chosen and protocol not in _PROTOCOLS:
            raise UsageError(f"OTLP over {protocol} is not supported", hint=f"set OTEL_EXPORTER_OTLP_PROTOCOL to one of: {', '.join(_PROTOCOLS)}")
        exporters[signal], protocols[signal] = tuple(dict.fromkeys(chosen)), protocol
    prometheus = None
    if "prometheus" in exporters["metrics"]:
        port = prometheus_port if prometheus_port is not None else _number(env.get("OTEL_EXPORTER_PROMETHEUS_PORT"), PROMETHEUS_PORT)
        prometheus = (env.get("OTEL_EXPORTER_PROMETHEUS_HOST") or "localhost", int(port))
    return Settings(
        exporters=exporters,
        protocols=protocols,
        file=file,
        timeout_s=_seconds(env.get("OTEL_EXPORTER_OTLP_TIMEOUT"), DEFAULT_TIMEOUT_S),
        interval_s=_number(env.get("OTEL_METRIC_EXPORT_INTERVAL"), 15000.0) / 1000,
        prometheus=prometheus,
    )


def _number(text: str | None, default: float) -> float:
    try:
        return float(text) if text else default
    except ValueError:
        return default


def _seconds(text: str | None, default: float) -> float:
    """The specification has milliseconds, Python's SDK seconds: what would be more than a minute is the former."""
    value = _number(text, default)
    return value / 1000 if value > 60 else value
