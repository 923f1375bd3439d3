"""AReaL's own workflow executor with an engine of a few lines: trains until a word in a file makes it go wrong.

``version``: the weights' version is raised no more, so that no episode may start. ``tool``: a tool is called in the event loop's own thread, and
its server never answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import torch
from areal.api.cli_args import InferenceEngineConfig
from areal.api.workflow_api import RolloutWorkflow
from areal.infra.workflow_executor import WorkflowExecutor
from torchdata.stateful_dataloader import StatefulDataLoader

FOLDER = Path(sys.argv[1])


def is_asked_for(trouble: str) -> bool:
    word = FOLDER / "trouble"
    return word.exists() and word.read_text() == trouble


class CountingEngine:
    """What the executor asks of an engine: a version, and tokens."""

    version = 0

    def get_version(self) -> int:
        return self.version

    async def agenerate(self, length: int) -> list[int]:
        await asyncio.sleep(0.02)
        return list(range(length))


class CalculatorWorkflow(RolloutWorkflow):  # type: ignore[misc]
    """One episode: generate, call the calculator, score."""

    def __init__(self, server: tuple[str, int]) -> None:
        self.server = server

    async def arun_episode(self, engine: Any, data: dict[str, int]) -> dict[str, torch.Tensor]:
        tokens = await engine.agenerate(8)
        if is_asked_for("tool"):
            self.call_calculator()
        count = len(tokens)
        return {
            "input_ids": torch.tensor([tokens]),
            "loss_mask": torch.ones(1, count),
            "attention_mask": torch.ones(1, count, dtype=torch.bool),
            "logprobs": torch.zeros(1, count),
            "versions": torch.full((1, count), engine.get_version()),
            "rewards": torch.tensor([1.0]),
        }

    def call_calculator(self) -> bytes:
        with socket.create_connection(self.server) as calculator:
            calculator.sendall(b"1 + 1\n")
            (FOLDER / "reached").touch()
            return calculator.recv(100)


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)  # the connections wait in its queue for ever
    config = InferenceEngineConfig(
        backend="sglang:d1",
        max_concurrent_rollouts=8,
        consumer_batch_size=4,
        max_head_offpolicyness=0,
        experiment_name="counting",
        trial_name="one",
        fileroot=str(FOLDER),
    )
    engine = CountingEngine()
    executor = WorkflowExecutor(config, engine)
    executor.initialize()
    loader = StatefulDataLoader([{"question": i} for i in range(64)], batch_size=4, collate_fn=list)
    workflow = CalculatorWorkflow(listener.getsockname())
    print(json.dumps({"pid": os.getpid()}), flush=True)
    threading.Thread(target=_end_with_input, daemon=True).start()
    step = 0
    while True:
        batch = executor.prepare_batch(loader, workflow)
        train(batch)
        if is_asked_for("version"):
            (FOLDER / "reached").touch()
        else:
            engine.version += 1
        step += 1
        (FOLDER / "step.part").write_text(json.dumps({"step": step}))
        os.rename(FOLDER / "step.part", FOLDER / "step")


def train(batch: Any) -> None:
    weights = torch.randn(200, 200)
    for _ in range(10 + len(batch)):
        weights = weights @ weights.T / 200


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
