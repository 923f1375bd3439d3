"""Metrics for operators: names and units by Prometheus' conventions, and alerts and a dashboard that ask for nothing else.

Where Prometheus is installed (Debian: ``apt install prometheus``), its own ``promtool`` judges names and rules, and a real server draws every panel.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from ports import free_port
from test_otel import JOB, NOW_S, VERDICT, a_look
from test_watch_learning import FLAT, report

from ray_rl_debug.metrics.model import MetricsReport, State
from ray_rl_debug.otel.settings import read_settings
from ray_rl_debug.otel.telemetry import Telemetry
from ray_rl_debug.watch.history import Event
from ray_rl_debug.watch.live import RoleLine
from ray_rl_debug.watch.signals import GpuSign

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
DASHBOARD = json.loads((DEPLOY / "grafana" / "rayrl-debug.json").read_text())
WIDTH = 24
"""Of Grafana's grid."""
NAME = re.compile(r"\b(?:rayrl|hw)_[a-z_]+\b(?!\s*[=!]~?\")")
TOOLS = pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus is not installed")
EXPORTED = {
    "rayrl_hang": "gauge",
    "rayrl_verdict": "gauge",
    "rayrl_events_total": "counter",
    "rayrl_look_duration_seconds": "histogram",
    "rayrl_progress_age_seconds": "gauge",
    "rayrl_role_progress_age_seconds": "gauge",
    "rayrl_ranks": "gauge",
    "rayrl_step": "gauge",
    "rayrl_nodes": "gauge",
    "rayrl_learning_findings": "gauge",
    "rayrl_learning_metric": "gauge",
    "hw_gpu_utilization": "gauge",  # "_ratio" by convention: OpenTelemetry's collector adds it, its Python SDK does not
    "hw_gpu_memory_usage_bytes": "gauge",
    "hw_power_watts": "gauge",
}
"""All of ours, and their types."""
SERIES = {f"{n}{s}" for n, kind in EXPORTED.items() for s in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))}


@pytest.fixture
def endpoint() -> Iterator[tuple[Telemetry, str]]:
    """A companion's telemetry that has seen everything, and where it is scraped."""
    port = free_port()
    telemetry = Telemetry(read_settings({"OTEL_EXPORTER_PROMETHEUS_HOST": "127.0.0.1"}, prometheus_port=port))
    try:
        telemetry.progress(JOB, [RoleLine(role="actor", ranks=4, working=1, phase="reward", age_s=11.0)], 12.5, 42)
        telemetry.gpus({("n1", 0): GpuSign(0, 0.5, 300.0, 1 << 30)})
        telemetry.nodes(2, 1)
        telemetry.learning(msgspec.json.decode(report(State.TROUBLE, findings=(FLAT,)), type=MetricsReport))
        telemetry.look(JOB, a_look(), VERDICT, began_s=NOW_S)
        yield telemetry, f"127.0.0.1:{port}"
    finally:
        telemetry.close()


def scrape(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
        return str(answer.read().decode())


def values(text: str, name: str) -> dict[str, float]:
    """Value by labels, without those of the SDK."""
    found = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", text, re.MULTILINE)
    return {",".join(p for p in labels.split(",") if not p.startswith("otel_")): float(value) for labels, value in found}


def test_names_types_and_units_are_prometheus_own(endpoint: tuple[Telemetry, str]) -> None:
    text = scrape(endpoint[1])
    types = dict(re.findall(r"^# TYPE ((?:rayrl|hw)_\w+) (\w+)$", text, re.MULTILINE))
    assert types == EXPORTED
    helped = set(re.findall(r"^# HELP ((?:rayrl|hw)_\w+) \S", text, re.MULTILINE))
    assert helped == set(EXPORTED)
    assert values(text, "rayrl_progress_age_seconds") == {f'ray_job_id="{JOB}"': 12.5}
    assert values(text, "rayrl_role_progress_age_seconds") == {f'ray_job_id="{JOB}",rayrl_role="actor"': 11.0}
    assert list(values(text, "hw_gpu_memory_usage_bytes").values()) == [float(1 << 30)]
    assert list(values(text, "hw_gpu_utilization").values()) == [0.5]
    assert values(text, "rayrl_nodes") == {'rayrl_state="heard"': 2.0, 'rayrl_state="silent"': 1.0}
    bounds = re.findall(r'^rayrl_look_duration_seconds_bucket\{.*le="([^"]+)".*\} (\S+)$', text, re.MULTILINE)
    assert [(le, float(n)) for le, n in bounds if float(le) in (1.0, 2.0)] == [("1.0", 0.0), ("2.0", 1.0)]


def test_a_hang_is_a_number_until_the_job_recovers_or_ends(endpoint: tuple[Telemetry, str]) -> None:
    telemetry, address = endpoint
    job = f'ray_job_id="{JOB}"'
    text = scrape(address)
    assert values(text, "rayrl_hang") == {job: 1.0}
    (labels,) = values(text, "rayrl_verdict")
    assert 'rayrl_who="actor/1"' in labels
    assert 'rayrl_cause="blocked-io"' in labels
    counted = values(text, "rayrl_events_total")
    assert {k.split("rayrl_kind=")[1]: v for k, v in counted.items()} == {
        '"look"': 0.0, '"verdict"': 1.0, '"slow"': 0.0, '"learning"': 0.0, '"recovered"': 0.0,
    }  # fmt: skip
    telemetry.event(JOB, Event(time_s=NOW_S + 9, kind="recovered", text="goes on"))
    text = scrape(address)
    assert values(text, "rayrl_hang") == {job: 0.0}
    assert values(text, "rayrl_verdict") == {}
    assert values(text, "rayrl_events_total")[f'{job},rayrl_kind="recovered"'] == 1.0
    telemetry.forget(JOB)
    assert values(scrape(address), "rayrl_hang") == {}


def expressions() -> list[str]:
    """Of all panels and annotations, with Grafana's variables filled in."""
    found = [t["expr"] for p in DASHBOARD["panels"] for t in p["targets"]] + [a["expr"] for a in DASHBOARD["annotations"]["list"]]
    return [e.replace("$instance", ".*").replace("$ray_job", ".*").replace("$__rate_interval", "1m") for e in found]


def rules() -> list[dict[str, Any]]:
    return [r for g in yaml.safe_load(ALERTS.read_text())["groups"] for r in g["rules"]]


@pytest.mark.parametrize("asked", [*(r["expr"] for r in rules()), *expressions()])
def test_alerts_and_panels_ask_for_metrics_that_there_are(asked: str) -> None:
    names = set(NAME.findall(re.sub(r"\bby \([^)]*\)|\bon \([^)]*\)", "", asked)))
    assert names or asked.startswith("up")
    assert names - SERIES == set()


def test_all_metrics_are_on_the_dashboard() -> None:
    text = " ".join(expressions())
    assert [n for n in EXPORTED if n not in text] == []


def test_alerts_say_who_what_and_what_next_on_one_screen_of_a_phone() -> None:
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"].keys() == {"summary", "description"}
        # what stands between braces is filled in later, with some 12 characters
        filled = {k: re.sub(r"\{\{.*?\}\}", "x" * 12, v) for k, v in rule["annotations"].items()}
        assert len(filled["summary"]) <= 60, rule["alert"]
        assert len(filled["description"]) <= 140, rule["alert"]


def test_the_dashboard_has_the_form_that_grafana_takes() -> None:
    panels = DASHBOARD["panels"]
    assert {"uid", "title", "schemaVersion", "panels", "templating", "time"} <= DASHBOARD.keys()
    assert len({p["id"] for p in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= WIDTH and not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] in ("stat", "table", "timeseries")
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert len({t["refId"] for t in panel["targets"]}) == len(panel["targets"])
    variables = {v["name"] for v in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z_]+)\}?", json.dumps(DASHBOARD))) - {"__rate_interval", "__all"}
    assert used == variables


def promtool(*arguments: object, given: str | None = None) -> str:
    done = subprocess.run(["promtool", *map(str, arguments)], input=given, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@TOOLS
def test_promtool_finds_nothing_wrong_with_names_alerts_and_queries(endpoint: tuple[Telemetry, str], tmp_path: Path) -> None:
    ours = [line for line in scrape(endpoint[1]).splitlines(keepends=True) if re.match(r"(# \w+ )?(rayrl|hw)_", line)]
    assert promtool("check", "metrics", given="".join(ours)) == ""
    assert "8 rules found" in promtool("check", "rules", ALERTS)
    promtool("check", "config", ALERTS.parent / "prometheus.yml")
    promtool("test", "rules", ALERTS.parent / "alerts_test.yml")
    asked = tmp_path / "asked.yml"
    asked.write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": [{"record": f"r{i}", "expr": e} for i, e in enumerate(expressions())]}]}))
    promtool("check", "rules", asked)


@pytest.fixture
def server(endpoint: tuple[Telemetry, str], tmp_path: Path) -> Iterator[str]:
    """A real Prometheus that scrapes the endpoint every second."""
    config = yaml.safe_load((ALERTS.parent / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(ALERTS)]
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [endpoint[1]]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    options = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data", f"--web.listen-address={address}"]
    with (tmp_path / "log").open("wb") as log:
        child = subprocess.Popen(["prometheus", *options], stdout=log, stderr=log)
    try:
        yield address
    finally:
        child.terminate()
        child.wait(20)


def ask(address: str, path: str, **query: str) -> Any:
    with urllib.request.urlopen(f"http://{address}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=5) as answer:
        return json.load(answer)["data"]


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed")
def test_a_real_prometheus_draws_every_panel_and_fires(server: str) -> None:
    until = time.monotonic() + 60
    left = set(expressions())
    firing: set[str] = set()
    while (left or "RayRunHangs" not in firing) and time.monotonic() < until:
        time.sleep(0.5)
        try:
            left = {e for e in left if not ask(server, "query", query=e)["result"]}
            firing = {a["labels"]["alertname"] for a in ask(server, "alerts")["alerts"] if a["state"] == "firing"}
        except urllib.error.URLError:
            continue  # it is still starting
    assert left == set()
    assert firing == {"RayRunHangs"}
