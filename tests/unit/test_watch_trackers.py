"""Messages to W&B and MLflow: in order, each within its time, and neither a slow nor a missing client holds up the companion."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from ray_rl_debug.bounded.programs import Finished, run_bounded
from ray_rl_debug.commands.watch import watch
from ray_rl_debug.model.errors import MissingExtraError, UsageError
from ray_rl_debug.watch import trackers
from ray_rl_debug.watch.trackers import MAX_WAITING, MESSAGE, Tracker, Trackers, check_installed

WANDB, MLFLOW = Tracker(kind="wandb", target="team/rl"), Tracker(kind="mlflow", target="abc123")
EVENT = {"event": "hang", "job": "01000000", "text": "HANG: actor/3", "summary": "actor/3 waits"}


class Sent:
    """In the place of `run_bounded`: notes what would be sent, and ends in the given way."""

    def __init__(self, *, code: int | None = 0, out: bytes = b"", timed_out: bool = False, held: threading.Event | None = None) -> None:
        self.orders: list[tuple[str, str, str]] = []
        self.environments: list[Mapping[str, str]] = []
        self._end, self._held = Finished(code=code, out=out, err=b"", timed_out=timed_out), held

    def __call__(self, argv: list[str], timeout_s: float, *, env: Mapping[str, str]) -> Finished:
        if self._held is not None:
            self._held.wait(30)
        order = json.loads(env[MESSAGE])
        self.orders.append((order["tracker"]["kind"], order["run"], order["event"]["event"]))
        self.environments.append(env)
        assert timeout_s == trackers.SEND_S
        assert not any("HANG" in word for word in argv)  # others can read a command line
        return self._end


def test_messages_come_in_order_to_every_tracker(tmp_path: Path) -> None:
    heard: list[str] = []
    sent = Sent()
    telling = Trackers((WANDB, MLFLOW), tmp_path, heard.append, run=sent)
    telling.send(lambda: EVENT)
    telling.send(lambda: {**EVENT, "event": "recovered"})
    telling.finish(30)
    assert [(kind, event) for kind, _, event in sent.orders] == [
        ("wandb", "hang"),
        ("mlflow", "hang"),
        ("wandb", "recovered"),
        ("mlflow", "recovered"),
    ]
    assert len({run for _, run, _ in sent.orders}) == 1  # one run of W&B for one job
    assert heard == []


def test_wandb_is_told_to_add_nothing_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_RUN_ID", "of-the-training-run")
    monkeypatch.setenv("WANDB_DISABLE_GIT", "false")
    sent = Sent()
    telling = Trackers((WANDB, MLFLOW), tmp_path, print, run=sent)
    telling.send(lambda: EVENT)
    telling.finish(30)
    wandb, mlflow = sent.environments
    assert "WANDB_RUN_ID" not in wandb
    assert (wandb["WANDB_DIR"], wandb["WANDB_DISABLE_GIT"], wandb["WANDB_X_DISABLE_META"]) == (str(tmp_path), "true", "true")
    assert mlflow["WANDB_DISABLE_GIT"] == "false"


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (Sent(code=1, out=b"chatter\nMlflowException: Run 'abc' not found\n"), "MlflowException: Run 'abc' not found"),
        (Sent(code=-9), "its client ended with -9"),
        (Sent(code=None, timed_out=True), "no answer within 60 s"),
        (Sent(code=1, out=b"\xff\x1b[31m" + b"x" * 5000), "x…"),
    ],
)
def test_failure_is_one_sentence(sent: Sent, told: str, tmp_path: Path) -> None:
    heard: list[str] = []
    telling = Trackers((MLFLOW,), tmp_path, heard.append, run=sent)
    telling.send(lambda: EVENT)
    telling.finish(30)
    (said,) = heard
    assert said.startswith("--mlflow did not take the message: ")
    assert said.endswith(told)
    assert len(said) < 260
    assert said.isprintable()


def test_a_slow_server_holds_up_nobody(tmp_path: Path) -> None:
    held, heard = threading.Event(), list[str]()
    sent = Sent(held=held)
    telling = Trackers((MLFLOW,), tmp_path, heard.append, run=sent)
    began = time.monotonic()
    for _ in range(MAX_WAITING + 10):
        telling.send(lambda: EVENT)
    telling.finish(0.1)
    assert time.monotonic() - began < 5
    assert 9 <= len(heard) <= 10
    assert set(heard) == {"a message to W&B or MLflow is lost: earlier ones are still being sent"}
    held.set()
    telling.finish(30)
    assert len(sent.orders) == MAX_WAITING + 10 - len(heard)


def test_without_trackers_nothing_is_started(tmp_path: Path) -> None:
    telling = Trackers((), tmp_path, print)
    telling.send(lambda: pytest.fail("nobody wants it"))
    telling.finish(0)


def test_a_client_that_is_not_installed_is_told_at_once() -> None:
    with pytest.raises(MissingExtraError, match="--mlflow needs MLflow's client") as caught:
        check_installed((WANDB, MLFLOW), find=lambda name: None if name == "mlflow" else object())
    assert caught.value.hint == "pip install 'ray-rl-debug[mlflow]'"


@pytest.mark.parametrize("given", [("--wandb", ""), ("--wandb", "a/b/c"), ("--wandb", "/x"), ("--wandb", "x/"), ("--mlflow", " ")])
def test_targets_that_cannot_be(given: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        CliRunner().invoke(watch, given, standalone_mode=False, catch_exceptions=False)


def test_the_process_that_sends_says_in_one_line_what_is_wrong() -> None:
    """Without its client, or with one that fails, it shows no traceback."""
    order = {"tracker": {"kind": "mlflow", "target": "x"}, "run": "r", "event": {"event": "hang"}}
    program = "import sys; sys.modules['mlflow'] = None; from ray_rl_debug.watch.tracker_child import main; sys.exit(main())"
    done = run_bounded([sys.executable, "-c", program], 60, env={**os.environ, MESSAGE: json.dumps(order)})
    assert (done.code, len(done.out.splitlines())) == (1, 1)
    assert b"ModuleNotFoundError: import of mlflow halted" in done.out
