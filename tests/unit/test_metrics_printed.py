"""Consoles and documents of trainers of other families, read by their shape."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from ray_rl_debug.metric_sources.load import load
from ray_rl_debug.metrics.model import Run
from ray_rl_debug.metrics.quantities import Quantity, find
from ray_rl_debug.model.errors import UnreadableFileError


def told(tmp_path: Path, *lines: str, name: str = "train.log") -> Run:
    file = tmp_path / name
    file.write_text("\n".join(lines) + "\n")
    return load([file], {})


def values(run: Run, quantity: Quantity) -> dict[int, float | None]:
    names = find(quantity, run.series)
    return dict(zip(run.series[names[0]].steps, run.series[names[0]].values, strict=True)) if names else {}


RAY = "\x1b[36m(Trainer pid=7, ip=10.0.0.2)\x1b[0m "
FORMS = {
    "step before a mapping": ("step 3: {'train/loss': 0.1, 'reward': 0.25}", "step 4: {'train/loss': 0.2, 'reward': 0.5}"),
    "through Ray, after a logger": (
        RAY + "2026-01-01 INFO  Global step 3: {'reward': 0.25, 'kl': 0.1}",
        RAY + "2026-01-01 INFO  Global step 4: {'reward': 0.5, 'kl': 0.1}",
    ),
    "a line of the source is no step": (
        "INFO trainer:train:201 - {'trainer/global_step': 3, 'reward': 0.25}",
        "INFO trainer:train:201 - {'trainer/global_step': 4, 'reward': 0.5}",
    ),
    "numbers of numpy and torch": (
        "step 3: {'reward': np.float32(0.25), 'loss': tensor(0.1, device='cuda:0')}",
        "step 4: {'reward': np.float32(0.5), 'loss': tensor(0.1, device='cuda:0')}",
    ),
    "pairs with bars": ("12:00:01 INFO Step 3 | Time: 1.5s | Reward: 0.25 | Loss: 1e-3", "12:00:03 INFO Step 4 | Reward: 0.50 | Loss: 1e-3"),
    "pairs with blanks": ("[step 3] 2:31<6:50 loss=0.1 reward=0.25", "[step 4] 2:32<6:49 loss=0.1 reward=0.5"),
    "behind a logger without a blank": ("INFO:root:Iter 3: reward=0.25, loss=0.1", "INFO:root:Iter 4: reward=0.5, loss=0.1"),
    "a row under bars": ("| Step | Training Loss | reward | kl |", "| --- | --- | --- | --- |", "| 3 | 0.1 | 0.25 | 0.01 |", "| 4 | 0.1 | 0.50 |  |"),
    "a row with tabs": ("Step\tTraining Loss\treward", "3\t0.1\t0.25", "4\tNo log\t0.5"),
    "a row of pandas": ("    step    loss  reward", "0      3    0.1    0.25", "1      4    0.1     0.5"),
    "pairs on a line of their own": (
        "Epoch: 0 | Step: 3 | Actor Loss: 0.1 | Critic Loss: 0.2", "Average reward score: 0.25 | EMA reward score: 0.2",
        "Epoch: 0 | Step: 4 | Actor Loss: 0.1 | Critic Loss: 0.2", "Average reward score: 0.5 | EMA reward score: 0.2",
    ),
    "a list under a heading": (
        "==== Step 3/9 ====", "Results:", "  \u2022 Avg Reward: 0.25", "==== Step 4/9 ====", "Results:", "  \u2022 Avg Reward: 0.5",
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_forms_that_tell_the_step(form: str, tmp_path: Path) -> None:
    assert values(told(tmp_path, *FORMS[form]), Quantity.REWARD) == {3: 0.25, 4: 0.5}


def test_reports_without_a_step_are_counted_and_told(tmp_path: Path) -> None:
    run = told(
        tmp_path,
        "{'loss': 0.1, 'grad_norm': nan, 'reward': 0.25, 'epoch': 0.1}",
        " 50%|###  | 1/2 [00:01<00:01]\r{'eval_loss': 0.3, 'epoch': 0.1}",
        "{'loss': '0.2', 'grad_norm': '0.5', 'reward': '0.5', 'epoch': '0.2'}",
        "{'train_runtime': 12.0, 'train_loss': 0.1, 'epoch': 0.2}",
    )
    assert values(run, Quantity.REWARD) == {1: 0.25, 2: 0.5}
    first = values(run, Quantity.GRAD_NORM)[1]
    assert first is not None
    assert math.isnan(first)
    assert run.series["eval_loss"].steps == (1,)
    assert run.is_ended is True
    assert any("its reports are counted, 1 to 2" in source for source in run.sources)


def test_a_table_in_a_frame(tmp_path: Path) -> None:
    block = ("-" * 20, "| rollout/ |  |", "|    ep_rew_mean | 0.25 |", "| time/ |  |", "|    iterations | 3 |", "| train/ |  |", "|    loss | 20.1 |")
    run = told(tmp_path, *block, "-" * 20)
    assert values(run, Quantity.REWARD) == {3: 0.25}
    assert run.series["train/loss"].values == (20.1,)


@pytest.mark.parametrize(
    "line",
    [
        "{'prompt_tokens': 12, 'completion_tokens': 30}",
        "config: {'lr': 1e-6, 'batch_size': 8}",
        "POST /v1/completions {'temperature': 1.0, 'top_p': 0.9}",
        "Step 3 | Waiting for 4 workers: 2",
        "gpu_worker.py:115 Sleep mode freed 51.57 GiB memory, 67.88 GiB is still in use",
        "{'loss': __import__('os').getpid(), 'reward': 0.1}",
        "{" * 3000 + ":" + "}" * 3000,
    ],
)
def test_lines_that_are_no_report_of_training(line: str, tmp_path: Path) -> None:
    assert told(tmp_path, "start", line).series == {}


def test_other_lines_in_a_log_of_verl_do_not_count(tmp_path: Path) -> None:
    run = told(tmp_path, "{'loss': 0.1, 'reward': 0.9, 'epoch': 1}", "step:3 - critic/score/mean:0.25 - actor/grad_norm:0.5")
    assert set(run.series) == {"critic/score/mean", "actor/grad_norm"}


@pytest.mark.parametrize(
    "whole",
    [
        {"epoch": 1.0, "log_history": [{"step": 3, "reward": 0.25}, {"step": 4, "reward": 0.5}]},
        [{"step": 3, "reward": 0.25}, {"step": 4, "reward": 0.5}],
    ],
)
def test_one_document_with_rows(whole: object, tmp_path: Path) -> None:
    run = told(tmp_path, json.dumps(whole, indent=2), name="trainer_state.json")
    assert values(run, Quantity.REWARD) == {3: 0.25, 4: 0.5}


@pytest.mark.parametrize("text", ['{\n"a": 1\n}', "[\n1, 2\n]", "{\n", "[\n" * 5000])
def test_a_document_without_rows_says_so(text: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError):
        told(tmp_path, text, name="state.json")


def test_rows_of_ray_tune(tmp_path: Path) -> None:
    row = {"training_iteration": 3, "env_runners": {"episode_return_mean": 0.25}, "config": {"lr": 0.1, "entropy": 9}}
    run = told(tmp_path, json.dumps(row), name="result.json")
    assert values(run, Quantity.REWARD) == {3: 0.25}
    assert not any(name.startswith("config") for name in run.series)


@pytest.mark.parametrize("column", ["current_steps", "global_step/max_steps"])
def test_steps_with_their_total(column: str, tmp_path: Path) -> None:
    run = told(tmp_path, json.dumps({column: "3/9", "reward": 0.25}), name="log.jsonl")
    assert values(run, Quantity.REWARD) == {3: 0.25}
