"""Ask a driver of this node to end."""

from __future__ import annotations

import errno
import os
import signal

from ray_rl_debug.collect.procfs import PROC, read_stat, read_text


def end_driver(pid: int, start_ticks: int) -> bool:
    """SIGTERM to the process of this pid and start, if it has Ray's core worker loaded; was it sent?"""
    try:
        target = os.pidfd_open(pid)  # stays with this process whatever becomes of its number
    except OSError as e:
        if e.errno != errno.ENOSYS:  # Linux before 5.3
            return False
        target = None
    try:
        stat = read_stat(PROC / str(pid))
        if stat is None or stat.start_ticks != start_ticks or "/_raylet" not in (read_text(PROC / str(pid) / "maps", 8 << 20) or ""):
            return False
        os.kill(pid, signal.SIGTERM) if target is None else signal.pidfd_send_signal(target, signal.SIGTERM)
    except OSError:
        return False
    finally:
        if target is not None:
            os.close(target)
    return True
