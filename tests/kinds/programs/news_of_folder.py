"""An evaluator asks the kernel (inotify) for news of the folder of checkpoints, and prints a score for each file that is written there.

The trainer waits for the score. Once it writes the checkpoint elsewhere and moves it there, of which the evaluator hears nothing. In the twin both
work for long, in turns. A judge waits for its next line.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time

import kit

IN_CLOSE_WRITE = 0x8


def evaluate() -> None:
    libc = ctypes.CDLL(None)
    news = libc.inotify_init()
    libc.inotify_add_watch(news, str(kit.folder() / "saved").encode(), IN_CLOSE_WRITE)
    kit.mark("evaluator")
    print("ready", flush=True)
    number = 0
    while True:
        os.read(news, 4096)
        number += 1
        kit.work(0.2)
        if kit.is_late(number):
            kit.in_c(8)
        print(number, flush=True)


def judge() -> None:
    kit.mark("judge")
    for line in sys.stdin:
        print(line.strip(), flush=True)


def save(step: int) -> None:
    saved, elsewhere = kit.folder() / "saved" / f"step{step}", kit.folder() / f"unsaved{step}"
    if kit.differs(step):
        elsewhere.write_text("weights")
        elsewhere.rename(saved)
    else:
        saved.write_text("weights")


def main() -> None:
    kit.begin()
    (kit.folder() / "saved").mkdir()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    evaluator, judging = (subprocess.Popen([sys.executable, __file__, name], **pipes) for name in ("evaluate", "judge"))
    evaluator.stdout.readline()
    for step in range(1, 10**6):
        kit.mark("main")
        judging.stdin.write("1\n")
        judging.stdin.flush()
        judging.stdout.readline()
        kit.work(0.3)
        if kit.is_late(step):
            time.sleep(kit.LONG_S / 3)
            kit.in_c(6)
        save(step)
        evaluator.stdout.readline()
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "evaluate":
        evaluate()
    elif sys.argv[1] == "judge":
        judge()
    else:
        main()
