"""A trainer and an engine, programs of their own, open two named pipes at every step: one for the prompts, one for the answers."""

from __future__ import annotations

import subprocess
import sys

import kit


def generate() -> None:
    kit.mark("engine")
    for step in range(1, 10**6):
        if kit.differs(step):
            with open(kit.fifo("answers"), "w") as answers, open(kit.fifo("prompts")) as prompts:
                answers.write(prompts.readline())
            continue
        with open(kit.fifo("prompts")) as prompts, open(kit.fifo("answers"), "w") as answers:
            text = prompts.readline()
            kit.work()
            answers.write(text.upper())


if __name__ == "__main__":
    if "generate" in sys.argv:
        generate()
    else:
        kit.begin()
        engine = subprocess.Popen([sys.executable, __file__, "generate"])
        for step in range(1, 10**6):
            kit.work(0.5)
            with open(kit.fifo("prompts"), "w") as prompts, open(kit.fifo("answers")) as answers:
                prompts.write(f"prompt {step}\n")
                prompts.flush()
                answers.readline()
            kit.step(step)
