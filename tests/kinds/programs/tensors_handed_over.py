"""Two samplers hand tensors to the learner through torch's own queue; each has a writer thread beside."""

from __future__ import annotations

import threading

import kit
import torch
import torch.multiprocessing as mp


def sample(name: str, tensors: mp.Queue, again: mp.Event) -> None:
    torch.set_num_threads(1)
    kit.mark(name)
    turn, told = threading.Lock(), threading.Event()

    def write(step: int) -> None:
        with turn:
            kit.work(0.05)
            if name == "sampler1" and kit.differs(step):
                told.wait()

    for step in range(1, 10**6):
        kit.work(0.4)
        writer = threading.Thread(target=write, args=(step,), name="writer")
        writer.start()
        if name == "sampler1" and kit.differs(step):
            kit.work(0.3)
            kit.mark(name)
        with turn:
            tensors.put(torch.full((4,), float(step)))
        again.wait()


def learn(queues: list[mp.Queue]) -> None:
    for step in range(1, 10**6):
        kit.mark("main")
        for tensors in queues:
            tensors.get()
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    kit.begin()
    spawn = mp.get_context("spawn")
    ended = spawn.Event()
    ended.set()
    queues = [spawn.Queue(2) for _ in range(2)]
    for n, tensors in enumerate(queues):
        spawn.Process(target=sample, args=(f"sampler{n}", tensors, ended), daemon=True).start()
    learn(queues)
