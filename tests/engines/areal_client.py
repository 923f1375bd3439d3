"""AReaL's rollouts against a real server: ``areal_client.py FOLDER PORT MODEL``. Real executor, real workflow, its reward in a pool of processes.

Each step: a batch, a little training, gates closed, version raised, gates opened. ``version`` in FOLDER/trouble keeps the version.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

FOLDER, PORT, MODEL = Path(sys.argv[1]), sys.argv[2], sys.argv[3]


def reward(prompt: str, completions: str, prompt_ids: Any, completion_ids: Any, **_: Any) -> float:
    return float(len(completions) % 2)


def is_asked_for(trouble: str) -> bool:
    word = FOLDER / "trouble"
    return word.exists() and word.read_text() == trouble


def main() -> None:
    import torch
    from areal.api.cli_args import GenerationHyperparameters, InferenceEngineConfig
    from areal.engine.vllm_remote import RemotevLLMEngine
    from areal.workflow.rlvr import RLVRWorkflow
    from torchdata.stateful_dataloader import StatefulDataLoader
    from transformers import AutoTokenizer

    config = InferenceEngineConfig(
        backend="vllm:d1",
        max_concurrent_rollouts=8,
        consumer_batch_size=4,
        max_head_offpolicyness=1,
        experiment_name="rollouts",
        trial_name="one",
        fileroot=str(FOLDER),
    )
    engine = RemotevLLMEngine(config)
    engine.initialize(addr=f"127.0.0.1:{PORT}")
    questions = [{"messages": [{"role": "user", "content": f"{i} + 1 ="}]} for i in range(64)]
    loader = StatefulDataLoader(questions, batch_size=4, collate_fn=list)
    answers = GenerationHyperparameters(max_new_tokens=200, min_new_tokens=100, temperature=1.0)
    workflow = RLVRWorkflow(reward, answers, AutoTokenizer.from_pretrained(MODEL))
    weights = torch.randn(200, 200)
    step = 0
    while True:
        batch = engine.prepare_batch(loader, workflow)
        for _ in range(200 + len(batch)):
            weights = torch.tanh(weights @ weights.T / 200)
        engine.pause()
        engine.pause_generation()
        if not is_asked_for("version"):
            engine.set_version(engine.get_version() + 1)
        engine.continue_generation()
        engine.resume()
        step += 1
        (FOLDER / "step.part").write_text(str(step))
        os.rename(FOLDER / "step.part", FOLDER / "step")


if __name__ == "__main__":
    main()
