"""The process that sends one message to W&B or MLflow: the verdict as an alert of a run of our own, or as tags of the training run."""

from __future__ import annotations

import os
import sys
from typing import Any

import msgspec

from ray_rl_debug.render.phone import clipped
from ray_rl_debug.watch.trackers import MESSAGE, Order

TITLE_CHARS = 64
"""W&B's alerts are notifications."""
TAG_CHARS = 250
"""The oldest stores of MLflow take no longer values."""
TAGS = ("state", "certainty", "headline", "rule", "cause", "summary")


def send_alert(order: Order) -> None:
    """An alert of the companion's own run: a second writer would disturb the training run."""
    import wandb

    event = order.event
    entity, _, project = order.tracker.target.rpartition("/")
    tags = [event["event"], *([event["rule"]] if event.get("rule") else [])]
    run: Any = wandb.init(
        entity=entity or None,
        project=project,
        id=order.run,
        name=order.run,
        job_type="rayrl-debug",
        tags=tags,
        resume="allow",
        reinit=True,
    )
    level = wandb.AlertLevel.ERROR if event["event"] == "hang" else wandb.AlertLevel.INFO if event["event"] == "recovered" else wandb.AlertLevel.WARN
    run.alert(title=clipped(event.get("headline") or event["text"], TITLE_CHARS), text=event["text"], level=level)
    run.summary.update({f"rayrl_debug/{name}": event[name] for name in TAGS if event.get(name) is not None} | {"rayrl_debug/event": event["event"]})
    run.finish()


def set_tags(order: Order) -> None:
    """Tags of the training run itself; the store is the one of ``MLFLOW_TRACKING_URI``."""
    from mlflow import MlflowClient

    event = order.event
    found = {"learning": event["summary"]} if event["event"] == "learning" else {name: event[name] for name in TAGS if event.get(name) is not None}
    client: Any = MlflowClient()
    for name, value in {"event": event["event"], **found}.items():
        client.set_tag(order.tracker.target, f"rayrl_debug.{name}", clipped(str(value), TAG_CHARS))


def main() -> int:
    """Exit code 0, or 1 and one line that says what went wrong: no client's traceback is shown."""
    out = os.dup(1)
    os.dup2(2, 1)  # clients print
    order = msgspec.json.decode(os.environ.pop(MESSAGE), type=Order)
    try:
        (send_alert if order.tracker.kind == "wandb" else set_tags)(order)
    except Exception as e:  # noqa: BLE001 a client raises what it likes; the companion tells it and goes on
        os.write(out, f"{type(e).__name__}: {next(iter(str(e).splitlines()), '')}\n".encode())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
