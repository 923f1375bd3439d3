"""The timeline of a cluster that runs now: a snapshot with pings of the nodes' clocks, and all task events that Ray keeps."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ray_rl_debug import codec, gaps
from ray_rl_debug.errors import UnreadableFileError
from ray_rl_debug.ray_state.channel import describe_failure
from ray_rl_debug.ray_state.task_events import SCHEMA, TaskEvents, read_task_events
from ray_rl_debug.report import Report
from ray_rl_debug.snapshot import Gap, Snapshot
from ray_rl_debug.timeline.compose import Inputs, Timeline, make_timeline
from ray_rl_debug.timeline.layout import Layout
from ray_rl_debug.timeline.model import Source

TASKS_FILE = "tasks.json.gz"
TRACE_FILE = "run.pftrace"


def live_inputs(
    snapshot: Snapshot,
    report: Report | None,
    *,
    job_id: str | None = None,
    clock: Callable[[], float] = time.time,
    read: Callable[..., TaskEvents] = read_task_events,
    second: Callable[[str], list[Any]] | None = None,
) -> Inputs:
    """The snapshot, and the task events of the cluster it was taken of; where Ray refuses those, what ``ray.timeline()`` gives.

    Args:
        snapshot: Taken just now.
        report: Its report, where there is one already.
        job_id: Only this job's tasks.
        clock: Unix time.
        read: Reads the task events.
        second: The second way to them.
    """
    reports = (report,) if report is not None else None
    if snapshot.ray is None:
        missing = Gap(id=gaps.RAY_TABLES, where="cluster", what="task events", reason="this capture looked at one node without Ray")
        return Inputs((snapshot,), reports, gaps=(missing,), job_id=job_id)
    try:
        events = read(snapshot.ray.address, now_s=clock(), job_id=job_id)
        return Inputs((snapshot,), reports, events, job_id=job_id)
    except Exception as e:  # noqa: BLE001 a private table of Ray: the rest of the timeline is worth having without it
        missing = Gap(id=gaps.RAY_TABLES, where="cluster", what="task events", reason=describe_failure(e))
    try:
        rows = (second or _ray_timeline)(snapshot.ray.address)
    except Exception as e:  # noqa: BLE001 the second way may fail as well
        again = Gap(id=gaps.RAY_TABLES, where="cluster", what="ray.timeline()", reason=describe_failure(e))
        return Inputs((snapshot,), reports, gaps=(missing, again), job_id=job_id)

    def make(layout: Layout) -> Source:
        from ray_rl_debug.timeline.sources.ray_timeline import ray_timeline_source

        return ray_timeline_source("ray.timeline()", rows, layout)

    return Inputs((snapshot,), reports, others=(make,), gaps=(missing,), job_id=job_id)


def _ray_timeline(address: str) -> list[Any]:
    """Ray's own export: only what has ended, and it takes a connection and a second."""
    import ray

    ray.init(address=address, log_to_driver=False, logging_level="ERROR", ignore_reinit_error=True)
    try:
        return list(ray.timeline() or ())
    finally:
        with contextlib.suppress(Exception):
            ray.shutdown()


def save_beside(folder: Path, snapshot: Snapshot, report: Report, *, progress: Callable[[str], None] = lambda _: None) -> Timeline | None:
    """Write ``run.pftrace`` and ``tasks.json.gz`` into the folder of a snapshot that was just taken. Never raises: the snapshot is what counts."""
    try:
        inputs = live_inputs(snapshot, report, job_id=snapshot.job_id)
        if inputs.events is not None:
            codec.write_atomically(folder / TASKS_FILE, codec.encode_compressed(inputs.events))
        return make_timeline(inputs, folder / TRACE_FILE, progress=progress)
    except Exception as e:  # noqa: BLE001 a timeline that fails must not cost the report
        progress(f"no timeline: {type(e).__name__}: {str(e)[:200]}")
        return None


def read_saved_events(path: Path) -> TaskEvents:
    """Task events as `save_beside` wrote them.

    Raises:
        UnreadableFileError: damaged, or something else.
    """
    try:
        found = msgspec.json.decode(codec.inflate(path.read_bytes()), type=TaskEvents)
    except OSError as e:
        raise UnreadableFileError(f"cannot be read: {e.strerror}") from e
    except (msgspec.ValidationError, msgspec.DecodeError) as e:
        raise UnreadableFileError(f"not valid: {e}") from e
    if found.schema != SCHEMA:
        raise UnreadableFileError(f"schema {found.schema!r} is not {SCHEMA!r}")
    return found
