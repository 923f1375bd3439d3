"""A trainer forks a simulator for each round, and the simulator works with tensors.

The trainer has used the threads of OpenMP before, so the forked one waits for threads that exist in the trainer only. In the twin the simulator works
with one thread.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import time

import kit
import torch


def simulate(number: int, results: multiprocessing.connection.Connection) -> None:
    kit.mark("simulator")
    if not kit.differs(number):
        torch.set_num_threads(1)
        time.sleep(kit.pause() * 2)
    state = torch.randn(2000, 2000)
    results.send(float((state * 2).exp().sum()))


def main() -> None:
    kit.begin()
    torch.set_num_threads(1)
    forked = multiprocessing.get_context("fork")
    for number in range(1, 10**6):
        kit.work(0.3)
        if kit.differs(number):
            torch.set_num_threads(2)
            float((torch.randn(2000, 2000) * 2).sum())
        ours, theirs = forked.Pipe(False)
        simulator = forked.Process(target=simulate, args=(number, theirs))
        simulator.start()
        ours.recv()
        simulator.join()
        kit.step(number)


if __name__ == "__main__":
    main()
