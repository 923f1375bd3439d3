"""A trainer writes checkpoints, a converter changes their form, an evaluator writes scores; each looks for the file of the one before."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import kit


def until_written(path: Path) -> str:
    while not path.exists():
        time.sleep(0.4)
    return path.read_text()


def convert() -> None:
    for step in range(1, 10**6):
        until_written(kit.folder() / f"checkpoint{step}")
        kit.mark("converter")
        kit.work(0.3)
        if kit.differs(step):
            raise SystemExit("no such layer")
        (kit.folder() / f"model{step}").write_text("weights")


def evaluate() -> None:
    for step in range(1, 10**6):
        until_written(kit.folder() / f"model{step}")
        kit.mark("evaluator")
        kit.work(0.3)
        (kit.folder() / f"score{step}").write_text("0.5")


def train() -> None:
    for role in ("convert", "evaluate"):
        subprocess.Popen([sys.executable, __file__, role])
    for step in range(1, 10**6):
        kit.mark("main")
        kit.work(0.3)
        (kit.folder() / f"checkpoint{step}").write_text("weights")
        until_written(kit.folder() / f"score{step}")
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "convert":
        convert()
    elif sys.argv[1] == "evaluate":
        evaluate()
    else:
        kit.begin()
        train()
