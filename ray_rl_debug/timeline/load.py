"""Files and folders on a command line → what a timeline is made of; what cannot be used costs one sentence, the rest is used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from ray_rl_debug.model import codec, gaps, report, snapshot
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.merge import merge_snapshots
from ray_rl_debug.model.snapshot import Gap, Snapshot
from ray_rl_debug.ray_state import task_events
from ray_rl_debug.ray_state.task_events import TaskEvent, TaskEvents
from ray_rl_debug.timeline.compose import Inputs
from ray_rl_debug.timeline.layout import Layout
from ray_rl_debug.timeline.live import read_saved_events
from ray_rl_debug.timeline.model import Source
from ray_rl_debug.timeline.recognise import recognise
from ray_rl_debug.timeline.sources.json_stream import read_head

MAX_FILES = 100_000
ONE_CAPTURE_S = 300.0
"""Snapshots of single nodes, taken by hand on each of them within this time, count as one of the cluster."""
_SCHEMA = re.compile(r'"schema"\s*:\s*"([^"]{1,80})"')
_OURS = ("learned.json", "timeline.json")
"""Lie beside what we read and hold nothing for it."""
_NEVER = (".pftrace", ".pftrace.gz", ".perfetto-trace", ".log.gz", ".txt.gz", ".pt", ".safetensors", ".bin", ".png", ".html", ".pdf")


class _Found:
    """What was read so far."""

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []
        self.events: list[TaskEvents] = []
        self.others: list[Callable[[Layout], Source]] = []
        self.gaps: list[Gap] = []

    def trouble(self, path: Path, reason: str) -> None:
        self.gaps.append(Gap(id=gaps.FILE_UNREAD, where=path.name, what="this file", reason=reason))


def load(paths: Sequence[Path], *, job_id: str | None = None, progress: Callable[[str], None] = lambda _: None) -> Inputs:
    """Read what was named; large traces are only recognised here and read when the timeline is made.

    Args:
        paths: Files and folders.
        job_id: Only this Ray job's tasks.
        progress: Told what is done.

    Raises:
        UnreadableFileError: none of it could be used; the message says why for the first few.
    """
    found = _Found()
    for number, (path, was_named) in enumerate(_files(paths, found), 1):
        if number % 200 == 0:
            progress(f"{number} files looked at")
        _take(path, was_named, found)
    if not (found.snapshots or found.events or found.others):
        why = "; ".join(f"{g.where}: {g.reason}" for g in found.gaps[:3]) or "the folder is empty"
        raise UnreadableFileError(f"nothing usable: {why}" + (f"; and {len(found.gaps) - 3} more" if len(found.gaps) > 3 else ""))
    return Inputs(
        snapshots=tuple(joined(found.snapshots)),
        events=_one(found.events),
        others=tuple(found.others),
        gaps=tuple(found.gaps),
        job_id=job_id,
    )


def _files(paths: Sequence[Path], found: _Found) -> Iterator[tuple[Path, bool]]:
    """Each file once, with whether it was named itself or stood in a folder."""
    seen: set[Path] = set()
    for path in paths:
        inside = [path] if not path.is_dir() else sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
        for file in inside:
            if file.resolve() in seen:
                continue
            seen.add(file.resolve())
            if len(seen) > MAX_FILES:
                found.trouble(path, f"more than {MAX_FILES:,} files; the first ones were used")
                return
            yield file, file == path


def _take(path: Path, was_named: bool, found: _Found) -> None:
    if path.name.endswith(_NEVER):
        if was_named:
            found.trouble(
                path, "it is a trace of ours; a trace is made from other files" if ".pftrace" in path.name else "no trace in this kind of file"
            )
        return
    try:
        if not path.is_file():
            raise UnreadableFileError("not a regular file")
        head = read_head(path)
        named = _SCHEMA.search(head[:2000])
        schema = named[1] if named else None
        if path.name in _OURS and not was_named:
            return
        if schema == snapshot.SCHEMA:
            found.snapshots.append(codec.decode_snapshot(path.read_bytes()))
        elif schema == task_events.SCHEMA:
            found.events.append(read_saved_events(path))
        elif schema == report.SCHEMA:
            if was_named:
                raise UnreadableFileError("a report holds no times; name its snapshot.json.gz")
        else:
            source = recognise(path, head)
            if source is not None:
                found.others.append(source)
            elif was_named or path.suffix in (".json", ".jsonl", ".gz"):
                raise UnreadableFileError("empty" if not head.strip() else "not a trace or log that we read")
    except UnreadableFileError as e:
        found.trouble(path, str(e))
    except OSError as e:
        found.trouble(path, f"cannot be read: {e.strerror or e}")


def joined(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """Snapshots in order of time; those of single nodes without Ray that were taken together become one."""
    result: list[Snapshot] = []
    for one in sorted(snapshots, key=lambda s: s.taken_time_s):
        last = result[-1] if result else None
        apart = one.taken_time_s - last.taken_time_s if last is not None else 0.0
        if (
            last is not None
            and apart < ONE_CAPTURE_S
            and not last.ray
            and not one.ray
            and not {n.name for n in last.nodes} & {n.name for n in one.nodes}
        ):
            result[-1] = merge_snapshots([last, one])
        else:
            result.append(one)
    return result


def _one(all_events: Sequence[TaskEvents]) -> TaskEvents | None:
    """Several readings of Ray's table as one: of each task the latest."""
    if not all_events:
        return None
    ordered = sorted(all_events, key=lambda e: e.read_time_s)
    tasks: dict[tuple[str, int], TaskEvent] = {}
    for events in ordered:
        tasks.update({(e.task_id, e.attempt): e for e in events.events})
    return msgspec.structs.replace(ordered[-1], events=tuple(tasks.values()))
