"""The whole trainer of verl as a program under test: its options, its steps, its troubles, its end."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

TRAINER = Path(__file__).parent / "trainer"
START_S = 1200.0
OPTIONS = """
    data.train_batch_size=4 data.max_prompt_length=96 data.max_response_length=16 data.dataloader_num_workers=0 algorithm.adv_estimator=grpo
    actor_rollout_ref.model.use_remove_padding=False +actor_rollout_ref.model.override_config.attn_implementation=eager
    actor_rollout_ref.model.enable_gradient_checkpointing=False actor_rollout_ref.actor.ppo_mini_batch_size=4
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.actor.use_torch_compile=False
    actor_rollout_ref.actor.fsdp_config.use_torch_compile=False actor_rollout_ref.actor.strategy=fsdp2 actor_rollout_ref.rollout.name=vllm
    actor_rollout_ref.rollout.n=2 actor_rollout_ref.rollout.agent.num_workers=1 actor_rollout_ref.rollout.tensor_model_parallel_size=1
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=2 actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=2
    actor_rollout_ref.rollout.calculate_log_probs=True reward.num_workers=1 reward.custom_reward_function.name=compute_score
    trainer.n_gpus_per_node=2 trainer.nnodes=1 trainer.device=cpu trainer.logger=[console] trainer.total_training_steps=100000 trainer.save_freq=-1
    trainer.test_freq=-1 trainer.val_before_train=False trainer.resume_mode=disable trainer.project_name=sums trainer.experiment_name=cpu
    transfer_queue.backend.SimpleStorage.num_data_storage_units=1 ray_kwargs.ray_init.num_cpus=16 +ray_kwargs.ray_init.num_gpus=2
    +ray_kwargs.ray_init.include_dashboard=False
""".split()


class Run:
    """The running trainer."""

    def __init__(self, folder: Path, child: subprocess.Popen[bytes]) -> None:
        self.folder, self.child, self.steps_seen = folder, child, 0

    def await_steps(self, more: int = 2, seconds: float = START_S) -> None:
        first = self.steps()
        self._await(lambda: self.steps() >= first + more, seconds)

    def steps(self) -> int:
        return max(map(int, re.findall(r"\bstep:(\d+) - ", (self.folder / "log").read_text(errors="replace"))), default=0)

    def make(self, trouble: str, title: str) -> None:
        """Waits until processes have stayed at what the trouble stops for a while."""
        (self.folder / "trouble").write_text(trouble)
        self._await(lambda: self._stands_at(title), 120)

    def release(self) -> None:
        (self.folder / "trouble").unlink()

    def _stands_at(self, title: str) -> bool:
        before = self.steps()
        for _ in range(20):
            if not self.titled(title):
                return False
            time.sleep(0.5)
        return self.steps() == before

    def titled(self, title: str) -> list[psutil.Process]:
        return [p for p in psutil.process_iter() if _title(p) == title and self._is_ours(p)]

    def _is_ours(self, process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error):
            return any(parent.pid == self.child.pid for parent in process.parents())
        return False

    def end(self) -> None:
        started = psutil.Process(self.child.pid).children(recursive=True) if self.child.poll() is None else []
        for process in [*([self.child] if self.child.poll() is None else []), *started]:
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.child.wait(30)

    def address(self) -> str:
        raylet = next(p for p in psutil.Process(self.child.pid).children(recursive=True) if "raylet/raylet" in _title(p))
        return next(a.partition("=")[2] for a in raylet.cmdline() if a.startswith("--gcs-address="))

    def _await(self, condition: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.child.poll() is None, (self.folder / "log").read_text(errors="replace")[-3000:]
            assert time.monotonic() < deadline, (self.folder / "log").read_text(errors="replace")[-3000:]
            time.sleep(0.5)


def _title(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline()).strip()
    return ""


def variables(folder: Path) -> dict[str, str]:
    return {
        "CUDA_VISIBLE_DEVICES": "0,1",
        "PYTHONUNBUFFERED": "1",
        "VERL_PLATFORM": "cpu",
        "VERL_ENGINE_DEVICE": "cuda",
        "VERL_USE_EXTERNAL_MODULES": "cpu_trainer",
        "PYTHONPATH": str(TRAINER),
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_DEDUP_LOGS": "0",
        "TROUBLE_FILE": f"{folder}/trouble",
    }


def start(folder: Path, python: Path, variables: Mapping[str, str], model: Path, more: Sequence[str] = ()) -> Run:
    """``folder`` has the prompts; ``more`` are options that come after the usual ones."""
    files = [f"data.train_files={folder}/train.parquet", f"data.val_files={folder}/val.parquet", f"actor_rollout_ref.model.path={model}"]
    places = [f"reward.custom_reward_function.path={TRAINER}/reward.py", f"+ray_kwargs.ray_init._temp_dir={folder}/ray"]
    with (folder / "log").open("wb") as log:
        command = [str(python), "-m", "verl.trainer.main_ppo", *OPTIONS, *files, *places, *more]
        child = subprocess.Popen(command, env=dict(variables), stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    return Run(folder, child)
