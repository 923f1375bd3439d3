"""Where a program prints to a terminal that takes no more."""

from __future__ import annotations

from ray_rl_debug.analyze.kernel_calls import TERMINAL, descriptor, kernel_call
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen


def prints_to(one: Seen, thread: SeenThread) -> str | None:
    """The terminal that a thread writes to and sleeps at: the kernel lets it sleep there only while the terminal takes nothing."""
    if thread.kernel is None or kernel_call(thread.kernel) != "write":
        return None
    fd = descriptor(thread.kernel)
    return next((f.path for f in one.process.files or () if fd is not None and f.fd == fd and TERMINAL.match(f.path)), None)
