"""Telemetry as a collector receives it: traces, gauges, verdicts; a dead endpoint; files; Prometheus."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest
from opentelemetry import metrics, trace
from otlp_receiver import OtlpReceiver, attributes

from ray_rl_debug.model.errors import UsageError
from ray_rl_debug.model.report import Cause, Certainty, Finding, ProcessSummary, Report, State, Verdict, Who
from ray_rl_debug.model.snapshot import Node, Snapshot
from ray_rl_debug.otel.settings import Settings, read_settings
from ray_rl_debug.otel.telemetry import Telemetry
from ray_rl_debug.watch.closer_look import Look
from ray_rl_debug.watch.history import Event
from ray_rl_debug.watch.live import RoleLine
from ray_rl_debug.watch.signals import GpuSign

NOW_S = 1_800_000_000.0
JOB = "01000000"


def a_look() -> Look:
    who = Who(label="actor/1", node="n1", pid=7, role="actor", rank=1)
    other = Who(label="actor/0", node="n1", pid=6, role="actor", rank=0)
    best = Finding(
        id="RRD502", name="blocked", cause=Cause.BLOCKED_IO, certainty=Certainty.LIKELY, summary="s", root=True, who=(who,), victims=(other,)
    )
    report = Report(
        verdict=Verdict(state=State.HANG, summary="actor/1 waits at a socket", certainty=Certainty.LIKELY),
        findings=(best,),
        processes=(ProcessSummary(who=other, kind="ray-worker", doing="waits"), ProcessSummary(who=who, kind="ray-worker", phase="reward")),
    )
    node = Node(name="n1", node_id="ab", started_time_s=NOW_S, window_s=1.5, took_s=1.8)
    return Look(snapshot=Snapshot(taken_time_s=NOW_S, nodes=(node,)), report=report, folder=Path("/out/x"), took_s=2.0)


VERDICT = Event(time_s=NOW_S + 2, kind="verdict", text="actor/1 waits at a socket", age_s=11.0)


def use(telemetry: Telemetry) -> None:
    telemetry.progress(JOB, [RoleLine(role="actor", ranks=4, working=1, phase="reward", age_s=11.0)], 11.0, 42)
    telemetry.nodes(2, 1)
    telemetry.gpus({("n1", 0): GpuSign(0, 0.5, 300.0, 1 << 30)})
    telemetry.look(JOB, a_look(), VERDICT, began_s=NOW_S)
    telemetry.event(JOB, Event(time_s=NOW_S + 9, kind="recovered", text="goes on"))


def settings_for(monkeypatch: pytest.MonkeyPatch, url: str, **more: str) -> Settings:
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_TIMEOUT": "2", **more}
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    return read_settings(env)


def test_traces_gauges_and_verdicts_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    with OtlpReceiver() as receiver:
        headers = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20x", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}
        telemetry = Telemetry(settings_for(monkeypatch, receiver.url, **headers))
        use(telemetry)
        telemetry.close()
    spans = {s.name: s for s in receiver.spans()}
    assert sorted(s.name for s in receiver.spans()) == ["rayrl.node", "rayrl.process", "rayrl.process", "rayrl.snapshot"]
    root, node = spans["rayrl.snapshot"], spans["rayrl.node"]
    assert node.parent_span_id == root.span_id
    assert spans["rayrl.process"].parent_span_id == node.span_id
    assert root.start_time_unix_nano == int(NOW_S * 1e9)
    assert root.end_time_unix_nano == int((NOW_S + 2) * 1e9)
    accused = [attributes(s) for s in receiver.spans() if attributes(s).get("rayrl.accused")]
    assert [(a["process.pid"], a["rayrl.rank"]) for a in accused] == [(7, 1)]
    verdict, recovered = receiver.logs()
    assert verdict.event_name == "rayrl.verdict"
    assert verdict.severity_text == "ERROR"
    assert verdict.trace_id == root.trace_id
    assert attributes(verdict)["rayrl.who"] == ["actor/1"]
    assert recovered.event_name == "rayrl.recovered"
    gauges = receiver.metrics()
    assert set(gauges) == {
        "rayrl.hang",
        "rayrl.events",
        "rayrl.look.duration",
        "rayrl.progress.age",
        "rayrl.role.progress.age",
        "rayrl.ranks",
        "rayrl.step",
        "rayrl.nodes",
        "hw.gpu.utilization",
        "hw.gpu.memory.usage",
        "hw.power",
    }
    ranks = {attributes(p)["rayrl.state"]: p.as_int for p in gauges["rayrl.ranks"]}
    assert ranks == {"working": 1, "resting": 3}
    assert attributes(gauges["hw.gpu.utilization"][0])["hw.id"] == "n1/gpu0"
    assert len(gauges["rayrl.step"]) == 1  # exported once at the end, not twice
    assert receiver.headers[0]["authorization"] == "Bearer x"
    assert receiver.headers[0]["content-encoding"] == "gzip"


def test_receiver_that_fails_first_gets_it_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with OtlpReceiver(fail=1) as receiver:
        telemetry = Telemetry(settings_for(monkeypatch, receiver.url, OTEL_METRICS_EXPORTER="none", OTEL_LOGS_EXPORTER="none"))
        telemetry.look(JOB, a_look(), VERDICT, began_s=NOW_S)
        until = time.monotonic() + 10
        while not receiver.spans() and time.monotonic() < until:
            time.sleep(0.05)
        telemetry.close()
        assert len(receiver.spans()) == 4


def test_dead_endpoint_costs_nothing_and_ends_in_time(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, never answers
        telemetry = Telemetry(settings_for(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}"))
        began = time.monotonic()
        for _ in range(20):
            use(telemetry)
        assert time.monotonic() - began < 1.0
        began = time.monotonic()
        telemetry.close()
        assert time.monotonic() - began < 8.0
    assert capfd.readouterr().err == ""


def test_nothing_global_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    before = type(trace.get_tracer_provider()), type(metrics.get_meter_provider())
    with OtlpReceiver() as receiver:
        telemetry = Telemetry(settings_for(monkeypatch, receiver.url))
        use(telemetry)
        assert (type(trace.get_tracer_provider()), type(metrics.get_meter_provider())) == before
        telemetry.close()


def test_file_holds_otlp_json(tmp_path: Path) -> None:
    file = tmp_path / "otel.jsonl"
    telemetry = Telemetry(read_settings({}, file=file))
    use(telemetry)
    telemetry.close()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    kinds = {next(iter(line)) for line in lines}
    assert kinds == {"resourceSpans", "resourceMetrics", "resourceLogs"}
    span = next(line for line in lines if "resourceSpans" in line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert len(bytes.fromhex(span["traceId"])) == 16
    assert len(bytes.fromhex(span["spanId"])) == 8
    assert isinstance(span["kind"], int)


def test_full_disk_under_the_file_is_silent() -> None:
    telemetry = Telemetry(read_settings({}, file=Path("/dev/full")))
    use(telemetry)
    telemetry.close()


def test_nothing_is_on_without_variables() -> None:
    assert not read_settings({}).is_on
    assert not read_settings({"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}).is_on
    assert not read_settings({f"OTEL_{s}_EXPORTER": "none" for s in ("TRACES", "METRICS", "LOGS")}).is_on


def test_endpoint_alone_turns_all_on_over_http() -> None:
    settings = read_settings({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:4318"})
    assert settings.exporters == {"traces": ("otlp",), "metrics": ("otlp",), "logs": ("otlp",)}
    assert set(settings.protocols.values()) == {"http/protobuf"}


@pytest.mark.parametrize("env", [{"OTEL_TRACES_EXPORTER": "zipkin"}, {"OTEL_LOGS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}])
def test_what_we_do_not_have_is_said(env: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        read_settings(env)
