"""Three ranks meet at a monitored barrier; then rank 0 puts the name of the checkpoint into the store, and the others read it there.

One rank reads the name before the barrier. Rank 0 writes it only after the barrier, for which it waits.
"""

import os
from datetime import timedelta

import kit

LONG = timedelta(hours=1)


def train():
    import torch.distributed as dist

    dist.init_process_group("gloo", timeout=LONG)
    rank = dist.get_rank()
    store = dist.distributed_c10d._get_default_store()
    store.set_timeout(LONG)
    kit.mark(f"rank{rank}")
    for number in range(1, 100000):
        kit.work(0.5)
        is_early = rank == 1 and kit.differs(number)
        kit.mark(f"rank{rank}")
        if not is_early:
            dist.monitored_barrier(timeout=LONG)
        if rank == 0:
            store.set(f"checkpoint/{number}", f"step-{number}")
        store.wait([f"checkpoint/{number}"], LONG)
        if is_early:
            dist.monitored_barrier(timeout=LONG)
        if rank == 0:
            kit.step(number)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train()
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
