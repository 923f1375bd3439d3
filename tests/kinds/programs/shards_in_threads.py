"""Each rank writes its shard in a thread, which meets the others at a barrier of an own group.

Rank 1's thread opens a pipe that nobody writes; all main threads join theirs.
"""

import os
import threading
import time

import torch
import torch.distributed as dist
from kit import begin, differs, fifo, folder, mark, ranks_as_programs, step, work


def save(me: int, number: int, savers: dist.ProcessGroup) -> None:
    work(0.2)
    if me == 1 and differs(number):
        with open(fifo("shard")) as file:
            file.read()
    dist.barrier(group=savers)


def tell(me: int) -> None:
    while True:
        (folder() / f"alive{me}").write_text(str(time.time()))
        time.sleep(0.5)


def rank() -> None:
    me = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    savers = dist.new_group()
    mark(f"rank{me}")
    threading.Thread(target=tell, args=(me,), daemon=True).start()
    saver = None
    for number in range(10**6):
        work(0.3)
        dist.all_reduce(torch.ones(4))
        if saver is not None:
            saver.join()
        saver = threading.Thread(target=save, args=(me, number, savers))
        saver.start()
        if me == 0:
            step(number)


def main() -> None:
    begin()
    for one in ranks_as_programs(__file__, 3):
        one.wait()


if __name__ == "__main__":
    rank() if "RANK" in os.environ else main()
