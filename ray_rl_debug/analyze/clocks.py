"""When the kernel's clock ends the wait of one thread."""

from __future__ import annotations

from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.limits import LONG_NAP_S, RARE_CALL_S
from ray_rl_debug.model.snapshot import Thread


def wakes_soon(kernel: Thread) -> bool:
    """Does the clock end its wait within the time that rare work takes, or its sleep within that of a long pause? It ends, whatever it is for."""
    return kernel.wakes_in_s is not None and kernel.wakes_in_s < (LONG_NAP_S if kernel_call(kernel) == "sleep" else RARE_CALL_S)


def may_end(kernel: Thread) -> bool:
    """Does the clock end its wait soon, or was not read when it ends its sleep? No thread sleeps without one."""
    return wakes_soon(kernel) or lacks_clock(kernel)


def lacks_clock(kernel: Thread) -> bool:
    """Snapshots of earlier versions hold no clocks, and calls by their numbers alone."""
    return kernel.wakes_in_s is None and kernel.call is not None and kernel_call(kernel) == "sleep"
