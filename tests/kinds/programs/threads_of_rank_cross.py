"""Each rank trains in its main thread and has a thread beside it that averages metrics; both use groups of their own.

Once rank 1's metrics thread takes the group of the training by mistake, so that its collective meets the others' training. In the twin a step of
rank 1 takes long now and then.
"""

from __future__ import annotations

import os
import sys
import threading
import time

import kit


def metrics(me: int) -> None:
    for step in range(1, 10**6):
        ready.acquire()
        wrong = me == 1 and kit.differs(step)
        dist.broadcast(torch.ones(4), src=0, group=None if wrong else own)


def rank() -> None:
    me = int(os.environ["RANK"])
    kit.mark(f"rank{me}")
    threading.Thread(target=metrics, args=(me,), name="metrics", daemon=True).start()
    for step in range(1, 10**6):
        kit.work(0.2)
        if me == 1 and kit.is_late(step):
            time.sleep(kit.LONG_S)
        ready.release()
        time.sleep(0.3)
        dist.all_reduce(torch.ones(1024))
        if me == 0:
            kit.step(step)


def main() -> None:
    kit.begin()
    for one in kit.ranks_as_programs(__file__, 3):
        one.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
    else:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        own = dist.new_group([0, 1, 2])
        ready = threading.Semaphore(0)
        rank()
