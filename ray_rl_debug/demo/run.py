"""A small cluster, a real hang, a real report: `rayrl-debug demo`."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ray_rl_debug.bounded.own_python import own_module
from ray_rl_debug.demo.interruptions import Interruptions
from ray_rl_debug.model.errors import RayRlDebugError
from ray_rl_debug.model.report import Report
from ray_rl_debug.model.snapshot import Snapshot

LOG = "demo.log"
START_DEADLINE_S = 90.0


class DemoFailedError(RayRlDebugError):
    """The demo's own cluster did not come up."""

    id = "RRD959"
    hint = "a heavy job beside it may be the reason: try again, or read the line shown"


def run_demo(*, progress: Callable[[str], None] = lambda _: None) -> tuple[Report, Snapshot, bool]:
    """Start the job, take the snapshot, clean up.

    Returns:
        The report, the snapshot, and whether the report's first root finding names one end of the call that gets no answer.

    Raises:
        DemoFailedError: the embedded cluster did not start.
    """
    # the demo's cluster and our view of it share one setting; an existing cluster of the user is not touched
    os.environ["RAY_AUTH_MODE"] = "disabled"
    from ray_rl_debug.capture.cluster import ClusterOptions, take_snapshot
    from ray_rl_debug.collect.options import CollectOptions
    from ray_rl_debug.diagnosis.diagnose import diagnose

    with _job(progress) as truth:
        progress(f"the job hangs now; the truth: pid {truth['rank']} waits for an answer of pid {truth['server']}, which never answers")
        options = ClusterOptions(address=truth["address"], collect=CollectOptions(samples=3, interval_s=1.0), timeout_s=30.0)
        snapshot = take_snapshot(options, progress=progress)
    report = diagnose(snapshot)
    named = {w.pid for w in report.findings[0].who} if report.findings else set()
    return report, snapshot, not named.isdisjoint((truth["rank"], truth["server"]))


@contextlib.contextmanager
def _job(progress: Callable[[str], None]) -> Iterator[Mapping[str, Any]]:
    with Interruptions() as interruptions:
        folder = tempfile.mkdtemp(prefix="rrd-")  # short: Unix socket paths are limited to 107 bytes
        job: subprocess.Popen[str] | None = None
        stands = False
        try:
            try:
                progress("starting two Ray nodes and a miniature RL job")
                job = _started(folder)
                with interruptions.heard():
                    line = _first_line(job, os.path.join(folder, LOG))
                    stands = True
                    yield json.loads(line)
            finally:
                with interruptions.heard():  # a second signal ends the waiting
                    progress("stopping the demo's cluster")
                    if job is not None and stands:  # one that still starts would not read that it may end
                        _close(job)
        finally:
            if job is not None:
                _end(job)
            _end_rest(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _started(folder: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", "RAY_TMPDIR": folder}
    environment.pop("RAY_ADDRESS", None)
    with open(os.path.join(folder, LOG), "wb") as log:
        return subprocess.Popen(
            own_module("ray_rl_debug.demo.demo_job", folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
            start_new_session=True,
            text=True,
        )


def _first_line(job: subprocess.Popen[str], log: str) -> str:
    """What the job says once it stands; DemoFailedError where it does not in its time."""
    guard = threading.Timer(START_DEADLINE_S, _end, args=(job,))
    guard.start()
    try:
        assert job.stdout is not None
        line = next((text for text in job.stdout if text.startswith("{")), None)
    finally:
        guard.cancel()
    if line is None:
        with open(log, encoding="utf-8", errors="replace") as f:
            tail = f.read()[-600:]
        raise DemoFailedError(f"the demo's cluster did not start: {tail.strip().splitlines()[-1] if tail.strip() else 'no output'}")
    return line


def _close(job: subprocess.Popen[str]) -> None:
    """Ask the job to end, and wait until it has."""
    assert job.stdin is not None
    with contextlib.suppress(OSError):
        job.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        job.wait(25)


def _end_rest(folder: str) -> None:
    """Ray's own processes, which live in sessions of their own and would go on writing: known by the folder in their environment."""
    mark, until, seen_none = f"RAY_TMPDIR={folder}".encode(), time.monotonic() + 5.0, 0
    while time.monotonic() < until and seen_none < 2:  # twice: one that starts a program at this moment shows no environment
        left = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid() and mark in _environment(name)]
        seen_none = 0 if left else seen_none + 1
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _environment(pid: str) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:  # it has ended, or is somebody else's
        return []


def _end(job: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(job.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        job.wait(5)
