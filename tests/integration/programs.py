"""Programs of their own, started when they are ready and ended with the test."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

DEADLINE_S = 60


def wait_for(condition, what):
    """Until `condition` holds; fails after `DEADLINE_S`."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def until_at_rest(*pids):
    """Until none of their threads has run between two looks: what they do when they start, or are called, is behind them."""

    def turns():
        status = [p.read_text() for pid in pids for p in Path(f"/proc/{pid}/task").glob("*/status")]
        assert all("State:\tZ" not in text for text in status), "a program ended"
        return [line for text in status for line in text.splitlines() if "State:" in line or "ctxt_switches" in line]

    seen = []

    def stands():
        seen.append(turns())
        time.sleep(0.1)
        return turns() == seen[-1] and all("R (" not in line for line in seen[-1])

    wait_for(stands, f"{pids} do not come to rest")


def starting():
    """For a fixture ``start``: ``start(*argv, ready=PATH)`` runs a program; with `ready`, until it has made that file."""
    children = []

    def run(*argv, ready=None, **options):
        children.append(subprocess.Popen([str(a) for a in argv], start_new_session=True, stdin=subprocess.DEVNULL, **options))
        if ready is not None:
            wait_for(lambda: ready.exists() or children[-1].poll() is not None, f"{argv} does not start")
            assert children[-1].poll() is None, f"{argv} ended"
        return children[-1]

    yield run
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
