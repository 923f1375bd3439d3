"""Makes one process of an engine wait at a chosen place, and go on when it is told to: a FIFO ``$TROUBLE_DIR/PLACE.RANK`` is the order.

The process waits at a lock as at a lost kernel or a hung mount; a thread of its own waits for the FIFO's writer and gives the lock back.
"""

import contextlib
import os
import threading
import time
from pathlib import Path


def hold(place, rank=0):
    order = Path(os.environ.get("TROUBLE_DIR", "/nowhere")) / f"{place}.{rank}"
    if not order.exists():
        return
    lock = threading.Lock()
    lock.acquire()
    threading.Thread(target=_give_back, args=(lock, order), name="order", daemon=True).start()
    lock.acquire()


def _give_back(lock, order):
    # Whoever only wants to know whether somebody waits here opens the FIFO and writes nothing.
    # It is renamed before somebody writes, so that nobody comes to wait again.
    said = b""
    with contextlib.suppress(FileNotFoundError):
        while not said:
            with order.open("rb") as end:
                said = end.read(1)
    lock.release()


def tp_rank():
    from vllm.distributed import get_tensor_model_parallel_rank

    return get_tensor_model_parallel_rank()


class Extension:
    """For ``--worker-extension-cls``: calls that ``/collective_rpc`` makes in every worker."""

    def reload_adapter(self):
        hold("rpc", self.rank)
        return self.rank

    def take_a_nap(self, seconds):
        time.sleep(float(seconds))
        return self.rank
