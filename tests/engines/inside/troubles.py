"""Makes one process of an engine wait at a chosen place, and go on when it is told to: a file ``$TROUBLE_DIR/PLACE.RANK`` is the order.

The process writes its number into ``PLACE.RANK.here`` and waits at a lock, as at a lost kernel. A signal gives the lock back: a thread that did so
would be one more to look at. Only a main thread can be woken so; others look every tenth of a second.
"""

import os
import signal
import threading
import time
from pathlib import Path

GO_ON = signal.SIGRTMIN + 5


def hold(place, rank=0):
    order = Path(os.environ.get("TROUBLE_DIR", "/nowhere")) / f"{place}.{rank}"
    if not order.exists():
        return
    if threading.current_thread() is threading.main_thread():
        _wait_at_lock(order)
    else:
        _announce(order, "")
        while order.exists():
            time.sleep(0.1)


def fail(place):
    """Raises where the file ``$TROUBLE_DIR/PLACE`` says so."""
    if (Path(os.environ.get("TROUBLE_DIR", "/nowhere")) / place).exists():
        raise RuntimeError(f"told to fail in {place}")


def _wait_at_lock(order):
    lock = threading.Lock()
    lock.acquire()
    before = signal.signal(GO_ON, lambda *_: lock.release())
    _announce(order, str(os.getpid()))
    lock.acquire()
    signal.signal(GO_ON, before)


def _announce(order, whom_to_signal):
    part = order.with_name(order.name + ".part")
    part.write_text(whom_to_signal)
    part.rename(order.with_name(order.name + ".here"))


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
