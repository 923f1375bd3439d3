"""A verdict in W&B's offline files and in MLflow's own stores, by their real clients."""

from __future__ import annotations

import getpass
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ray_rl_debug.watch import trackers
from ray_rl_debug.watch.trackers import Tracker, Trackers

pytestmark = pytest.mark.integration
EVENT = {
    "event": "hang", "job": "01000000", "state": "hang", "certainty": "likely", "rule": "RRD502", "cause": "blocked-io",
    "headline": "HANG: actor/3, blocked input or output; 2 wait", "text": "HANG: actor/3\njob 01000000, likely", "summary": "actor/3 waits",
}  # fmt: skip
RECOVERED = {**EVENT, "event": "recovered", "state": "healthy", "headline": "RUNS AGAIN"}


def send(tracker: Tracker, folder: Path, *events: dict[str, Any]) -> list[str]:
    heard: list[str] = []
    telling = Trackers((tracker,), folder, heard.append)
    for event in events:
        telling.send(lambda e=event: e)
    telling.finish(150)
    return heard


def records(file: Path) -> list[Any]:
    """What W&B's own file holds."""
    from wandb.proto import wandb_internal_pb2 as proto

    from ray_rl_debug.metric_sources.wandb import HEAD_BYTES, _records

    found = []
    with file.open("rb") as f:
        f.read(HEAD_BYTES)
        for data in _records(f):
            record = proto.Record()
            record.ParseFromString(data)
            found.append(record)
    return found


def test_wandb_offline_run_holds_the_alert_and_nothing_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="W&B's client is not installed")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef0123456789abcdef01234567")
    assert send(Tracker(kind="wandb", target="team/rl"), tmp_path, EVENT) == []
    (file,) = tmp_path.rglob("*.wandb")
    found = records(file)
    run = next(r.run for r in found if r.HasField("run"))
    assert (run.entity, run.project, run.job_type, set(run.tags)) == ("team", "rl", "rayrl-debug", {"hang", "RRD502"})
    assert [(r.alert.title, r.alert.text, r.alert.level) for r in found if r.HasField("alert")] == [
        ("HANG: actor/3, blocked input or output; 2 wait", EVENT["text"], "ERROR")
    ]
    assert run.host != socket.gethostname()
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink() and path.suffix != ".log")
    for secret in (os.getcwd(), "tracker_child", "0123456789abcdef0123456789abcdef01234567", f"/home/{getpass.getuser()}"):
        assert secret.encode() not in everything


@pytest.mark.filterwarnings("ignore")  # MLflow's own
@pytest.mark.parametrize("store", ["file", "sqlite"])
def test_mlflow_run_gets_tags(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow's client is not installed")
    if store == "sqlite":
        pytest.importorskip("sqlalchemy", reason="only the whole MLflow has this store")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path}/runs" if store == "file" else f"sqlite:///{tmp_path}/runs.db")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the newest wants to be asked twice
    client = mlflow.MlflowClient()
    run = client.create_run(client.create_experiment("rl")).info.run_id
    assert send(Tracker(kind="mlflow", target=run), tmp_path, EVENT, RECOVERED) == []
    tags = {name: value for name, value in client.get_run(run).data.tags.items() if name.startswith("rayrl_debug.")}
    assert tags == {
        "rayrl_debug.event": "recovered",
        "rayrl_debug.state": "healthy",
        "rayrl_debug.certainty": "likely",
        "rayrl_debug.headline": "RUNS AGAIN",
        "rayrl_debug.rule": "RRD502",
        "rayrl_debug.cause": "blocked-io",
        "rayrl_debug.summary": "actor/3 waits",
    }
    assert client.get_run(run).info.status == "RUNNING"


@pytest.fixture
def silent_server() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def take() -> None:
            try:
                while True:
                    kept.append(server.accept()[0])
            except OSError:
                return

        threading.Thread(target=take, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    for one in kept:
        one.close()


@pytest.mark.parametrize("kind", ["wandb", "mlflow"])
def test_a_server_that_never_answers_is_left_in_time(kind: Any, silent_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(kind, reason="the client is not installed")
    monkeypatch.setenv("WANDB_BASE_URL", silent_server)
    monkeypatch.setenv("WANDB_API_KEY", "0123456789abcdef0123456789abcdef01234567")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", silent_server)
    monkeypatch.setattr(trackers, "SEND_S", 15.0)
    began = time.monotonic()
    heard = send(Tracker(kind=kind, target="team/rl"), tmp_path, EVENT)
    assert heard == [f"--{kind} did not take the message: no answer within 15 s"]
    assert time.monotonic() - began < 60
    mine = psutil.Process().children(recursive=True)
    assert [p.name() for p in mine if p.status() != psutil.STATUS_ZOMBIE and "tracker_child" in " ".join(p.cmdline())] == []
    assert [p.pid for p in psutil.process_iter() if p.name().startswith("wandb-core") and str(tmp_path) in p.environ().get("WANDB_DIR", "")] == []
