"""The process that the user started waits for one that works, and ends even when that one cannot.

A thread that waits in the kernel for the server of a hung FUSE mount (or for some cluster file systems) cannot be killed, and its process does
not end before it comes back. So the work is done in a child, which tells its exit code before it leaves, and may be left behind.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import time
from collections.abc import Callable

from ray_rl_debug.commands.streams import LEAVE_S
from ray_rl_debug.model.errors import EXIT_NO_VERDICT

VERBS = frozenset({"snapshot", "report", "doctor", "timeline", "metrics"})
"""Those that read files of others. ``watch`` has a keeper of its own."""
LOOK_S = 0.1
_PR_SET_PDEATHSIG = 1


def run(work: Callable[[], int]) -> int:
    """What `work` returns, which is done in a child of ours; signals are passed on to it."""
    asked = {n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN}
    try:
        code_end, own_end = os.pipe()
    except OSError:  # no descriptor is left: the work itself will say so
        return work()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*asked, signal.SIGCHLD})
    waits = os.getpid()
    try:
        child = os.fork()
    except OSError:  # no process is to be had: do without
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return work()
    if child == 0:
        os.close(code_end)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if os.getppid() != waits:
            os._exit(EXIT_NO_VERDICT)
        code = work()
        # Whoever reads our output waits for its end, which would not come before that of our last thread.
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        os.write(own_end, bytes([code & 0xFF]))
        return code
    os.close(own_end)
    return _wait(child, code_end, {*asked, signal.SIGCHLD})


def _wait(child: int, code_end: int, signals: set[signal.Signals]) -> int:
    code, until = None, float("inf")
    while time.monotonic() < until:
        info = signal.sigtimedwait(signals, LOOK_S)
        # what a terminal sends goes to both of us by itself; only what was sent to our number (si_code up to 0) is passed on
        if info is not None and info.si_signo != signal.SIGCHLD and info.si_code <= 0:
            os.kill(child, info.si_signo)
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            ended = os.waitstatus_to_exitcode(status)
            return ended if ended >= 0 else 128 - ended
        if code is None and select.select([code_end], [], [], 0)[0] and (told := os.read(code_end, 1)):
            code, until = told[0], time.monotonic() + LEAVE_S + 1.0
    return code if code is not None else EXIT_NO_VERDICT
