"""A trainer writes its metrics with wandb, offline; wandb's own process takes them, and the trainer finishes the run after each evaluation.

Once that process has been stopped by a signal. In the twin it is stopped for a moment, and goes on.
"""

from __future__ import annotations

import os
import signal
import time

import kit
import psutil
import wandb


def service() -> psutil.Process:
    return next(p for p in psutil.Process().children(recursive=True) if "wandb-core" in p.name() or "wandb-core" in " ".join(p.cmdline()))


def main() -> None:
    kit.begin()
    os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(kit.folder())}
    for evaluation in range(1, 10**6):
        run = wandb.init(project="rl", dir=str(kit.folder()))
        kit.mark("service", service().pid)
        for step in range(5):
            kit.work(0.05)
            run.log({"reward": step})
        if kit.differs(evaluation):
            service().send_signal(signal.SIGSTOP)
        elif kit.is_late(evaluation):
            service().send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            service().send_signal(signal.SIGCONT)
        run.finish()
        kit.step(evaluation)


if __name__ == "__main__":
    main()
