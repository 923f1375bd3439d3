"""The timeline of a cluster that runs now: a snapshot with pings of the nodes' clocks, and all task events that Ray keeps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ray_rl_debug.model import codec, gaps
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.report import Report
from ray_rl_debug.model.snapshot import Gap, Snapshot
from ray_rl_debug.model.whole_files import write_whole
from ray_rl_debug.privacy.redact import made_safe
from ray_rl_debug.ray_state.channel import describe_failure
from ray_rl_debug.ray_state.task_events import SCHEMA, TaskEvents, read_task_events
from ray_rl_debug.timeline.compose import Inputs, Timeline, make_timeline
from ray_rl_debug.timeline.layout import Layout
from ray_rl_debug.timeline.model import Source
from ray_rl_debug.timeline.ray_export import export
from ray_rl_debug.timeline.show import document, lines
from ray_rl_debug.timeline.sources.watch_history import WatchHistorySource

if TYPE_CHECKING:
    from ray_rl_debug.render.html.strips import Strip

TASKS_FILE = "tasks.json.gz"
TRACE_FILE = "run.pftrace"
TABLES_FILE = "timeline.json"
SNAPSHOT_FILE = "snapshot.json.gz"
REPORT_FILE = "report.json"
PAGE_FILE, TEXT_FILE = "report.html", "report.txt"
HISTORY_FILE = "history.jsonl"
MAX_LOOKS = 10
MAX_LOOKS_BYTES = 20 << 20
"""Compressed; in memory they are ten times as large."""


def live_inputs(
    snapshot: Snapshot,
    report: Report | None,
    *,
    job_id: str | None = None,
    clock: Callable[[], float] = time.time,
    read: Callable[..., TaskEvents] = read_task_events,
    second: Callable[[str], list[dict[str, Any]]] = export,
    earlier: Sequence[tuple[Snapshot, Report]] = (),
    others: Sequence[Callable[[Layout], Source]] = (),
) -> Inputs:
    """The snapshot, and the task events of the cluster it was taken of; where Ray refuses those, what ``ray.timeline()`` gives.

    Args:
        snapshot: Taken just now.
        report: Its report, where there is one already.
        job_id: Only this job's tasks.
        clock: Unix time.
        read: Reads the task events.
        second: The second way to them.
        earlier: Snapshots of the same run taken before, with their reports, the oldest first.
        others: More sources, made once it is known where processes stand.
    """
    known = tuple(s for s, _ in earlier)
    all_reports = (*(r for _, r in earlier), report) if report is not None else None
    found = Inputs((*known, snapshot), all_reports, others=tuple(others), job_id=job_id)
    if snapshot.ray is None:
        missing = Gap(id=gaps.RAY_TABLES, where="cluster", what="task events", reason="this capture looked at one node without Ray")
        return msgspec.structs.replace(found, gaps=(missing,))
    try:
        events = read(snapshot.ray.address, now_s=clock(), job_id=job_id)
        return msgspec.structs.replace(found, events=events)
    except Exception as e:  # noqa: BLE001 a private table of Ray: the rest of the timeline is worth having without it
        missing = Gap(id=gaps.RAY_TABLES, where="cluster", what="task events", reason=describe_failure(e))
    try:
        rows = second(snapshot.ray.address)
    except Exception as e:  # noqa: BLE001 the second way may fail as well
        again = Gap(id=gaps.RAY_TABLES, where="cluster", what="ray.timeline()", reason=describe_failure(e))
        return msgspec.structs.replace(found, gaps=(missing, again))

    def make(layout: Layout) -> Source:
        from ray_rl_debug.timeline.sources.ray_timeline import ray_timeline_source

        return ray_timeline_source("ray.timeline()", rows, layout)

    return msgspec.structs.replace(found, others=(make, *others), gaps=(missing,))


def save_beside(
    folder: Path,
    snapshot: Snapshot,
    report: Report,
    *,
    earlier: Sequence[tuple[Snapshot, Report]] = (),
    others: Sequence[Callable[[Layout], Source]] = (),
    history: Path | None = None,
    strips: Callable[[], Sequence[Strip]] = tuple,
    progress: Callable[[str], None] = lambda _: None,
) -> Timeline | None:
    """Write ``run.pftrace``, its tables as ``timeline.json`` and ``tasks.json.gz`` into the folder of a snapshot that was just taken.

    Never raises: the snapshot is what counts.

    Args:
        folder: Where the snapshot's own files are.
        snapshot: Taken just now.
        report: Its report.
        earlier: As in `live_inputs`.
        others: As in `live_inputs`.
        history: The folder of a companion's run: its events and its earlier looks are added.
        strips: Gives what the companion saw before the capture, for the page.
        progress: Told what is done, and why there is no timeline.
    """
    try:
        if history is not None and (history / HISTORY_FILE).is_file():
            earlier = (*earlier_looks(history, before_s=snapshot.taken_time_s), *earlier)
            others = (*others, lambda _: WatchHistorySource(history / HISTORY_FILE))
        inputs = live_inputs(snapshot, report, job_id=snapshot.job_id, second=_no_second, earlier=earlier, others=others)
        if inputs.events is not None:
            write_whole(folder / TASKS_FILE, codec.encode_compressed(made_safe(inputs.events)))
        made = make_timeline(inputs, folder / TRACE_FILE, progress=progress)
        write_whole(folder / TABLES_FILE, msgspec.json.encode(document(made)) + b"\n")
        _into_report(folder, snapshot, report, made, strips)
        return made
    except Exception as e:  # noqa: BLE001 a timeline that fails must not cost the report
        progress(f"no timeline: {type(e).__name__}: {str(e)[:200]}")
        return None


def _into_report(folder: Path, snapshot: Snapshot, report: Report, made: Timeline, strips: Callable[[], Sequence[Strip]]) -> None:
    """The tables into the report's files that are there already."""
    from ray_rl_debug.render import html

    page, text = folder / PAGE_FILE, folder / TEXT_FILE
    if page.is_file():
        write_whole(page, html.render(report, snapshot, history=strips(), tables=made.tables).encode("utf-8", "replace"))
    if text.is_file():
        before = text.read_text(encoding="utf-8", errors="replace")
        write_whole(text, "\n".join([before, *lines(made)]).encode("utf-8", "replace") + b"\n")


def earlier_looks(history: Path, *, before_s: float, most: int = MAX_LOOKS, max_bytes: int = MAX_LOOKS_BYTES) -> list[tuple[Snapshot, Report]]:
    """The latest looks of a companion before a moment, the oldest first; what cannot be read is left out."""
    found: list[tuple[Snapshot, Report]] = []
    left = max_bytes
    for path in sorted(history.glob(f"*/{SNAPSHOT_FILE}"), reverse=True):
        try:
            left -= path.stat().st_size
            if left < 0 or len(found) >= most:
                break
            snapshot = codec.read_snapshot(path)
            report = codec.decode_report((path.parent / REPORT_FILE).read_bytes())
        except (OSError, UnreadableFileError):
            continue
        if snapshot.taken_time_s < before_s:
            found.append((snapshot, report))
    return found[::-1]


def _no_second(address: str) -> list[dict[str, Any]]:
    """Beside a snapshot nobody waits another minute."""
    raise TimeoutError(f"not asked at {address}: it would hold up the snapshot")


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
