"""Two cores of an engine step in waves: each wave ends with a sum over both, also where one has nothing to do. A trainer pauses them to sync weights.

Once it pauses core 1 and waits until that has stopped, then core 0, and goes on with none before both have said so: core 1 stops before its sum,
core 0 waits in that sum and cannot say so. In the twin a wave takes long.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection

import kit


def core(which: int, port: int, orders: Connection) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=which, world_size=2)
    kit.mark(f"core{which}")
    for wave in range(1, 10**9):
        time.sleep(0.02)
        order = orders.recv() if orders.poll() else ""
        late = order == "sum" and which == 1
        if late:
            time.sleep(kit.LONG_S)
        if order == "stop":
            orders.send("stopped")
            while orders.recv() != "go":
                pass
        dist.all_reduce(torch.tensor([float(wave)]))
        if order == "sum":
            orders.send("summed")


def main() -> None:
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    port = kit.free_port()
    ends = []
    for which in range(2):
        mine, its = spawn.Pipe()
        spawn.Process(target=core, args=(which, port, its), daemon=True).start()
        ends.append(mine)
    for step in range(1, 10**6):
        kit.work(0.5)
        if kit.differs(step):
            ends[1].send("stop")
            ends[1].recv()
            time.sleep(0.5)
            kit.mark("main")
            ends[0].send("stop")
            ends[0].recv()
        if kit.is_late(step):
            ends[1].send("sum")
            ends[1].recv()
        kit.mark("main")
        kit.step(step)


if __name__ == "__main__":
    main()
