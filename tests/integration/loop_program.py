"""An RL loop in miniature on a cluster that runs: ``loop_program.py ADDRESS FOLDER RANKS STEP_S [hang=STEP] [irregular=SEED] [cpus=N]
[steps=0]``.

Ranks work, score with a tool and update; each step is logged. From step ``hang`` on rank 1 waits for a tool that never answers: FOLDER/hung then
holds its pid. FOLDER/hang_now makes it wait from the next step on. A file FOLDER/answer lets the tool answer. FOLDER/save_now makes rank 0
write a checkpoint at the pace of a slow disk until the file is gone. FOLDER/end ends the job well, where steps=0 without a single step. Without
these it ends when standard input closes.
"""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import threading
import time
from pathlib import Path

import ray


class PolicyTrainer:
    """One rank."""

    def __init__(self, rank: int, folder: str, hang: int) -> None:
        self.rank, self.folder, self.hang = rank, Path(folder), hang

    def pid(self) -> int:
        return os.getpid()

    def init_model(self) -> int:
        return self.rank

    def generate_sequences(self, step: int, seconds: float) -> int:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            sum(i * i for i in range(2000))
            time.sleep(0.01)
        return step

    def compute_reward(self, step: int) -> float:
        if self.rank == 1 and (step == self.hang or (self.folder / "hang_now").exists()):
            return self.ask_tool()
        time.sleep(0.05)
        return 1.0

    def ask_tool(self) -> float:
        with socket.create_server(("127.0.0.1", 0)) as tool, socket.create_connection(tool.getsockname()) as connection:
            other, _ = tool.accept()
            threading.Thread(target=self._answer, args=(other,), daemon=True).start()
            (self.folder / "hung").write_text(json.dumps({"pid": os.getpid(), "time_s": time.time()}))
            connection.recv(10)
        (self.folder / "hang_now").unlink(missing_ok=True)
        return 0.5

    def _answer(self, other: socket.socket) -> None:
        while not (self.folder / "answer").exists():
            time.sleep(0.1)
        other.sendall(b"42")

    def update_policy(self, step: int, seconds: float) -> int:
        time.sleep(seconds)
        return step

    def save_checkpoint(self, step: int, seconds: float) -> int:
        time.sleep(seconds)
        while self.rank == 0 and (self.folder / "save_now").exists():
            (self.folder / "checkpoint.bin").write_bytes(bytes(2 << 20))
            time.sleep(0.2)
        return step

    def validate(self, step: int, seconds: float) -> int:
        time.sleep(seconds)
        return step


class TaskRunner:
    """Drives the ranks; here it has nothing for them to do."""

    def run(self, folder: str) -> str:
        while not Path(folder, "end").exists():
            time.sleep(0.1)
        return "training finished"


def main() -> None:
    address, folder, count, step_s, *more = sys.argv[1:]
    options = dict(word.partition("=")[::2] for word in more)
    ray.init(address=address, namespace="loop", log_to_driver=False, logging_level="ERROR")
    kind = ray.remote(PolicyTrainer)
    cpus = float(options.get("cpus", 0))
    ranks = [kind.options(num_cpus=cpus, scheduling_strategy="SPREAD").remote(r, folder, int(options.get("hang", 0))) for r in range(int(count))]
    pids = ray.get([a.pid.remote() for a in ranks])
    if sys.stdin is not None and not sys.stdin.closed:
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    print(json.dumps({"driver": os.getpid(), "job": ray.get_runtime_context().get_job_id(), "pids": pids}), flush=True)
    dice = random.Random(int(options["irregular"])) if "irregular" in options else None
    end = Path(folder, "end")
    step = 0
    if options.get("steps") == "0":
        ray.get([a.init_model.remote() for a in ranks])
        print(ray.get(ray.remote(TaskRunner).options(num_cpus=cpus).remote().run.remote(folder)), flush=True)
    while not end.exists():
        step += 1
        seconds = dice.choice((1, 2, 3, 5, 8, 13, 21, 34, 60)) if dice else float(step_s)
        ray.get([a.generate_sequences.remote(step, seconds * 0.7) for a in ranks])
        ray.get([a.compute_reward.remote(step) for a in ranks])
        ray.get([a.update_policy.remote(step, seconds * 0.2) for a in ranks])
        if dice and step % 8 == 0:
            ray.get([a.save_checkpoint.remote(step, 20.0 if a is ranks[0] else 0.1) for a in ranks])
        if Path(folder, "save_now").exists():
            ray.get([a.save_checkpoint.remote(step, 0.0) for a in ranks])
        if dice and step % 5 == 0:
            ray.get([a.validate.remote(step, 10.0) for a in ranks])
        with open(os.path.join(folder, "steps.txt"), "a") as f:
            f.write(f"{step} {time.time():.3f}\n")
        print(f"step: {step} loss: {1 / step:.3f}", flush=True)


if __name__ == "__main__":
    main()
