"""Workers of Ray that meet in an actor which counts them; one has not come, it waits for a lock on the data that an exporter holds.

The exporter, a child of the driver, writes to a disk that takes nothing. In the twin it writes slowly.
"""

import asyncio
import fcntl
import subprocess
import sys
import time

import kit

WORKERS = 3


def export():
    """Holds the lock for a moment of each round, and for ever once its disk takes nothing."""
    kit.mark("exporter")
    number = 0
    while True:
        with (kit.folder() / "data").open("a") as data:
            fcntl.flock(data, fcntl.LOCK_EX)
            number = int((kit.folder() / "step").read_text()) if (kit.folder() / "step").exists() else 0
            if kit.differs(number):
                kit.mark("exporter")
                with open(kit.fifo("disk"), "w") as disk:
                    disk.write("episodes")
            time.sleep(6 if kit.is_healthy() and number % 4 == 3 else 0.05)
        time.sleep(1.0)


def main():
    import ray

    kit.begin()
    exporter = subprocess.Popen([sys.executable, __file__, "export"])
    ray.init(num_cpus=4, include_dashboard=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)

    @ray.remote(num_cpus=0)
    class Barrier:
        def __init__(self):
            self.here, self.opened = 0, asyncio.Event()
            kit.mark("barrier")

        async def arrive(self):
            self.here += 1
            opened = self.opened
            if self.here == WORKERS:
                self.here, self.opened = 0, asyncio.Event()
                opened.set()
            await opened.wait()

    @ray.remote
    class Worker:
        def __init__(self, n, barrier):
            self.n, self.barrier = n, barrier
            kit.mark(f"worker{n}")

        def read(self):
            with (kit.folder() / "data").open() as data:
                fcntl.flock(data, fcntl.LOCK_EX)

        def round(self, number):
            kit.work(0.3)
            kit.mark(f"worker{self.n}")
            if self.n == 1:
                self.read()
            ray.get(self.barrier.arrive.remote())
            return number

    barrier = Barrier.options(max_concurrency=16).remote()
    workers = [Worker.remote(n, barrier) for n in range(WORKERS)]
    for number in range(1, 100000):
        ray.get([worker.round.remote(number) for worker in workers])
        kit.step(number)
    exporter.wait()


if __name__ == "__main__":
    export() if sys.argv[1] == "export" else main()
