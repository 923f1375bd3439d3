"""Signals that come at any moment end a wait, and never lock it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from ray_rl_debug.bounded.stop_event import StopEvent

AT_EVERY_LINE = """
import sys, threading
from ray_rl_debug.bounded.stop_event import StopEvent
Kind = {"ours": StopEvent, "threading": threading.Event}[sys.argv[1]]
for at in range(1, 12):
    event, lines = Kind(), 0
    def handler(frame, what, argument):
        global lines
        lines += what == "line"
        if what == "line" and lines == at:
            sys.settrace(None)
            event.set()  # as a signal handler would, between two lines of the wait
        return handler
    sys.settrace(handler)
    in_time = event.wait(1)
    sys.settrace(None)
    if lines < at:
        break
    assert in_time
print("ended")
"""


def test_a_signal_at_any_moment_of_a_wait_ends_it() -> None:
    done = subprocess.run([sys.executable, "-c", AT_EVERY_LINE, "ours"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("ended\n", "")


def test_the_event_of_threading_would_lock_itself_out() -> None:
    """Why there is a class of our own at all."""
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-c", AT_EVERY_LINE, "threading"], capture_output=True, timeout=5, check=False)


@pytest.mark.parametrize("timeout", [5.0, None])
def test_set_by_another_thread(timeout: float | None) -> None:
    event = StopEvent()
    assert not event.wait(0.0)
    threading.Timer(0.01, event.set).start()
    assert event.wait(timeout)
    assert event.is_set()
    assert event.wait(0.0)


def test_it_waits_no_longer_than_asked() -> None:
    began = time.monotonic()
    assert not StopEvent().wait(0.05)
    assert time.monotonic() - began >= 0.05
