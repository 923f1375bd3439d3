"""Keeps the companion alive: a process that only waits, and starts it again when the kernel, or a fault of ours, has ended it.

The one that works is a fork of the one that waits, before anything is loaded. Who is started again finds the history on disk: it knows what the run
has taught, and what people were told.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import TextIO

from ray_rl_debug.model.errors import EXIT_FINDINGS, EXIT_INTERRUPTED, EXIT_NO_VERDICT, EXIT_OK, EXIT_USAGE

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
STEADY_S = 300.0
"""A companion that lived so long was well: the next pause is a short one again."""
STARTED_S = 30.0
"""What fails earlier than this, and says so, would fail again."""
TRIES = 10
"""In a row, each dead before it was steady."""
_MEANT = frozenset({EXIT_OK, EXIT_FINDINGS, EXIT_USAGE, EXIT_INTERRUPTED})
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1


def keep_alive(
    *,
    out: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
    first_pause_s: float = FIRST_PAUSE_S,
) -> int | None:
    """Split in two. Returns None in the process that is to do the work; in the other its exit code, once it has ended for good.

    The worker has a process group of its own, so that a key pressed in a terminal reaches it once, through us; it ends when we do.
    """
    keeper = _Keeper()
    pause_s, tries = first_pause_s, 0
    while True:
        began = clock()
        pid = keeper.start()
        if pid == 0:
            return None
        status = keeper.wait()
        lived_s = clock() - began
        code = os.waitstatus_to_exitcode(status)
        if keeper.is_asked or code in _MEANT or (code == EXIT_NO_VERDICT and lived_s < STARTED_S):
            keeper.leave()
            return code if code >= 0 else 128 - code
        pause_s, tries = (first_pause_s, 1) if lived_s >= STEADY_S else (pause_s, tries + 1)
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        if tries > TRIES:
            _say(out, f"the companion was ended by {how} {TRIES} times in a row; it is not started again")
            keeper.leave()
            return EXIT_NO_VERDICT
        _say(out, f"the companion was ended by {how} after {lived_s:.0f} s; it is started again in {pause_s:.0f} s")
        if not keeper.rest(pause_s):
            keeper.leave()
            return EXIT_INTERRUPTED
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


class _Keeper:
    """The one that waits."""

    def __init__(self) -> None:
        self.is_asked = False
        """Were we asked to end?"""
        self._worker: int | None = None
        self._before = {number: signal.getsignal(number) for number in _PASSED_ON}

    def start(self) -> int:
        """As `os.fork`; when we were asked to end meanwhile, the worker is told at once."""
        waits = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)  # no signal is lost between two owners
        self._worker = os.fork()
        if self._worker == 0:
            os.setpgid(0, 0)
            self._give_back()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
            _end_with(waits)
            return 0
        with contextlib.suppress(OSError):
            os.setpgid(self._worker, self._worker)
        for number in _PASSED_ON:
            signal.signal(number, self._pass_on)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        if self.is_asked:
            os.kill(self._worker, signal.SIGTERM)
        return self._worker

    def wait(self) -> int:
        assert self._worker is not None
        _, status = os.waitpid(self._worker, 0)
        self._worker = None
        return status

    def rest(self, seconds: float) -> bool:
        """False when we were asked to end meanwhile."""
        until = time.monotonic() + seconds
        while not self.is_asked and time.monotonic() < until:
            time.sleep(0.05)
        return not self.is_asked

    def leave(self) -> None:
        self._give_back()

    def _give_back(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self.is_asked = True
        if self._worker is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._worker, number)


def _say(out: TextIO | None, text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        (out or sys.stderr).write(f"rayrl-debug: {text}\n")
        (out or sys.stderr).flush()


def _end_with(parent: int) -> None:
    """Ask the kernel for a SIGTERM when the process that waits for us is gone."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)
