"""A rollout writes its episode into a file and wakes the trainer by a signal; the trainer sleeps until one comes and answers over a pipe.

Once the signal comes before the trainer sleeps: its handler only counts, and the trainer sleeps until the next, which never comes.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import kit


def train() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    signal.signal(signal.SIGUSR1, lambda *_: None)
    kit.mark("trainer")
    for number in range(1, 10**6):
        if kit.differs(number):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
            time.sleep(4)
            signal.pause()
        else:
            signal.sigwait([signal.SIGUSR1])
        kit.work(0.3)
        if kit.is_healthy() and random.random() < 0.15:
            time.sleep(random.uniform(1, 3))
        print(number, flush=True)


def judge() -> None:
    kit.mark("judge")
    for line in sys.stdin:
        print(line.strip(), flush=True)


def main() -> None:
    kit.begin()
    trainer = subprocess.Popen([sys.executable, __file__, "train"], stdout=subprocess.PIPE)
    subprocess.Popen([sys.executable, __file__, "judge"], stdin=subprocess.PIPE)
    kit.until_there("trainer")
    assert trainer.stdout
    for number in range(1, 10**6):
        kit.work(0.3)
        os.kill(trainer.pid, signal.SIGUSR1)
        trainer.stdout.readline()
        kit.step(number)


if __name__ == "__main__":
    match sys.argv[1]:
        case "train":
            train()
        case "judge":
            judge()
        case _:
            main()
