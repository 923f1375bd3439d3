"""A buffer in a Ray actor gives the slots of its samples back when they are dropped; dropped under the buffer's own lock, they wait for it."""

from __future__ import annotations

import threading

import kit
import ray


class Sample:
    def __init__(self, buffer: Slots) -> None:
        self.buffer = buffer

    def __del__(self) -> None:
        with self.buffer.lock:
            self.buffer.free += 1


class Slots:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.free = 64
        self.kept: list[Sample] = []

    def keep(self) -> None:
        with self.lock:
            self.free -= 1
        self.kept.append(Sample(self))

    def drop_oldest(self, under_lock: bool) -> None:
        if under_lock:
            with self.lock:
                del self.kept[:4]
        else:
            dropped, self.kept = self.kept[:4], self.kept[4:]
            del dropped


@ray.remote(num_cpus=0)
class Buffer:
    def __init__(self) -> None:
        kit.mark("buffer")
        self.slots = Slots()

    def add(self, step: int) -> int:
        for _ in range(8):
            self.slots.keep()
        kit.work(0.3)
        if kit.differs(step):
            kit.mark("buffer")
        self.slots.drop_oldest(under_lock=kit.differs(step))
        return self.slots.free


if __name__ == "__main__":
    kit.begin()
    info = ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20)
    buffer = Buffer.remote()
    kit.mark("cluster", address=info["gcs_address"])
    for step in range(1, 10**6):
        ray.get(buffer.add.remote(step))
        kit.step(step)
