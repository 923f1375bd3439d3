"""Experiment trackers: what people are told also stands in W&B and MLflow. Each message is sent by a process of its own, one after another.

The clients start services and threads, and try a dead server for minutes: none of that may be in the companion.
"""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from ray_rl_debug.bounded.own_python import own_module
from ray_rl_debug.bounded.programs import Finished, run_bounded
from ray_rl_debug.model.errors import MissingExtraError
from ray_rl_debug.render.phone import clipped

MESSAGE = "RAYRL_DEBUG_TRACKER"
"""Environment variable of the process that sends; others can read a command line."""
SEND_S = 60.0
MAX_WAITING = 20
"""Messages that wait behind a slow server; more are lost, and that is told."""
QUIET_WANDB = {
    "WANDB_SILENT": "true",
    "WANDB_HOST": "-",
    "WANDB_CONSOLE": "off",
    "WANDB_DISABLE_GIT": "true",
    "WANDB_DISABLE_CODE": "true",
    "WANDB_SAVE_CODE": "false",
    # names before and since wandb 0.20
    "WANDB__DISABLE_META": "true",
    "WANDB_X_DISABLE_META": "true",
    "WANDB__DISABLE_STATS": "true",
    "WANDB_X_DISABLE_STATS": "true",
    "WANDB_X_DISABLE_MACHINE_INFO": "true",
    "WANDB_X_SAVE_REQUIREMENTS": "false",
    "WANDB__SAVE_REQUIREMENTS": "false",
}
"""W&B adds to a run what it sees of the machine, its packages and its repository; the verdict is all that was asked for."""
PACKAGES = {"wandb": "wandb", "mlflow": "mlflow"}


class Tracker(msgspec.Struct, frozen=True, kw_only=True):
    """Where verdicts go, beside people."""

    kind: Literal["wandb", "mlflow"]
    target: str
    """W&B: ``PROJECT`` or ``ENTITY/PROJECT``, in which the companion has runs of its own. MLflow: the id of the training run that gets tags."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the process that sends is told."""

    tracker: Tracker
    run: str
    """W&B: the id of the companion's run for this job; it stays the same."""
    event: dict[str, Any]
    """``rayrl-debug/event/1``, the document of the webhooks."""


def check_installed(trackers: Sequence[Tracker], find: Callable[[str], object] = importlib.util.find_spec) -> None:
    """Raises MissingExtraError when a client is not there; imports nothing."""
    for tracker in trackers:
        if find(PACKAGES[tracker.kind]) is None:
            name = "W&B" if tracker.kind == "wandb" else "MLflow"
            raise MissingExtraError(f"--{tracker.kind} needs {name}'s client", hint=f"pip install 'ray-rl-debug[{tracker.kind}]'")


class Trackers:
    """Sends to all trackers in the order of the messages, beside the watch."""

    def __init__(self, trackers: Sequence[Tracker], folder: Path, heard: Callable[[str], None], run: Callable[..., Finished] = run_bounded) -> None:
        self._trackers, self._folder, self._heard, self._run = tuple(trackers), folder, heard, run
        self._own = uuid.uuid4().hex[:8]
        self._waiting: queue.Queue[Callable[[], Mapping[str, Any]]] = queue.Queue(MAX_WAITING)
        self._thread: threading.Thread | None = None

    def send(self, event: Callable[[], Mapping[str, Any]]) -> None:
        """Start to send; the event may have to be waited for. Never waits."""
        if not self._trackers:
            return
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self._heard("a message to W&B or MLflow is lost: earlier ones are still being sent")
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True, name="trackers")
            self._thread.start()

    def finish(self, patience_s: float) -> None:
        """Wait for what is under way."""
        until = time.monotonic() + patience_s
        while self._waiting.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.05)

    def _work(self) -> None:
        while True:
            make = self._waiting.get()
            try:
                event = dict(make())
                for tracker in self._trackers:
                    self._send(tracker, event)
            finally:
                self._waiting.task_done()

    def _send(self, tracker: Tracker, event: dict[str, Any]) -> None:
        order = Order(tracker=tracker, run=f"rayrl-debug-{event['job']}-{self._own}", event=event)
        env = {**os.environ, MESSAGE: json.dumps(msgspec.to_builtins(order))}
        if tracker.kind == "wandb":
            env = {"WANDB_DIR": str(self._folder), **env, **QUIET_WANDB}
            env.pop("WANDB_RUN_ID", None)  # of the training run, where the companion has its environment
        try:
            done = self._run(own_module("ray_rl_debug.watch.tracker_child"), SEND_S, env=env)
        except OSError as e:
            self._heard(f"--{tracker.kind} did not take the message: {e.strerror}")
            return
        if done.code != 0:
            said = done.out.decode("utf-8", errors="replace").strip().splitlines()
            why = f"no answer within {SEND_S:.0f} s" if done.timed_out else clipped(said[-1], 200) if said else f"its client ended with {done.code}"
            self._heard(f"--{tracker.kind} did not take the message: {why}")
