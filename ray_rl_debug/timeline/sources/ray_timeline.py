"""What ``ray.timeline()`` wrote: tasks that ended, with their parts. No submissions, no unfinished tasks: the second best source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ray_rl_debug.analyze.phase import phase_of_name
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Gap
from ray_rl_debug.timeline.layout import Layout, TrackPlace
from ray_rl_debug.timeline.model import CLUSTER, Batch, Clock, SharedEnd, Span, Track
from ray_rl_debug.timeline.sources.json_stream import as_number, read_objects
from ray_rl_debug.timeline.steps import Steps, find_steps, merge_runs

_PARTS = ("task:deserialize_arguments", "task:execute", "task:store_outputs")


class RayTimelineSource:
    """Rows of one export. Small enough to hold: Ray keeps 100,000 tasks at most."""

    def __init__(self, name: str, rows: Iterable[dict[str, Any]] | None, layout: Layout, path: Path | None = None) -> None:
        self.name = name
        self.gaps: list[Gap] = []
        self._layout = layout
        self._path = path
        self._rows = rows
        self._batches: list[Batch] | None = None

    def clocks(self) -> Sequence[Clock]:
        return ()

    def shared_ends(self) -> Sequence[SharedEnd]:
        return ()

    def batches(self) -> Iterator[Batch]:
        if self._batches is None:
            self._batches = list(self._build())
        return iter(self._batches)

    def _trouble(self, sentence: str) -> None:
        self.gaps.append(Gap(id=gaps.FILE_UNREAD, where=self.name, what="part of this file", reason=sentence))

    def _build(self) -> Iterator[Batch]:
        tasks: dict[tuple[str, str], list[Span]] = defaultdict(list)
        classes: dict[tuple[str, str], str] = {}
        foreign = 0
        for row in self._rows if self._rows is not None else read_objects(self._path or Path(), self._trouble):
            span = _span(row)
            node, worker = row.get("pid"), row.get("tid")
            if span is None or not isinstance(node, str) or not isinstance(worker, str):
                foreign += row.get("ph") != "M"
                continue
            tasks[(node, worker)].append(span)
            if span.category == "task" and "." in str(row.get("cat")):
                classes.setdefault((node, worker), str(row["cat"])[6:].rpartition(".")[0].rsplit(":", 1)[-1])
        if foreign:
            self._trouble(f"{foreign:,} events are not Ray's and were left out")
        runs = {k: merge_runs([(s.start_ns, s.end_ns, p) for s in spans if s.category == "task" and (p := _phase(s))]) for k, spans in tasks.items()}
        steps = find_steps(r for of_worker in runs.values() for r in of_worker)
        for (node, worker), spans in tasks.items():
            place = self._place(node, worker, classes.get((node, worker)))
            main = Track((*place.path, "tasks"), place.clock, "async", self.name)
            calls = sorted((s for s in spans if s.category == "task"), key=lambda s: s.start_ns)
            yield from (Batch(main, group) for group in _with_parts(calls, [s for s in spans if s.category == "task part"]))
            submits = [s for s in spans if s.category not in ("task", "task part")]
            if submits:
                yield Batch(Track((*place.path, "submits"), place.clock, "span", self.name), submits)
            if runs[(node, worker)]:
                yield from _phases(place, runs[(node, worker)], steps, self.name)

    def _place(self, node: str, worker: str, class_name: str | None) -> TrackPlace:
        kind, _, hexadecimal = worker.partition(":")
        name = self._layout.node(node) or node
        role = "driver" if kind == "driver" else class_name or "tasks"
        label = f"{role} {hexadecimal[:8]}"
        return TrackPlace((CLUSTER, name, role, label), label, f"wall:{name}", name)


def ray_timeline_source(name: str, rows: Iterable[dict[str, Any]], layout: Layout) -> RayTimelineSource:
    """Rows that are in memory, as ``ray.timeline()`` returns them."""
    return RayTimelineSource(name, rows, layout)


def _span(row: dict[str, Any]) -> Span | None:
    start, length = as_number(row.get("ts")), as_number(row.get("dur"))
    category, name = row.get("cat"), row.get("name")
    if row.get("ph") != "X" or start is None or length is None or not isinstance(category, str) or not isinstance(name, str):
        return None
    args = row.get("args") if isinstance(row.get("args"), dict) else {}
    task_id = args.get("task_id") if isinstance(args, dict) else None
    kind = "task part" if category in _PARTS else "task" if category.startswith("task::") else category
    shown = category[6:] if kind == "task" else name
    start_ns = round(start * 1000)
    details = (("task", shown), ("task_id", task_id)) if isinstance(task_id, str) else ()
    return Span(start_ns, start_ns + max(0, round(length * 1000)), name, kind, details)


def _phase(span: Span) -> str | None:
    return "init" if span.name == "__init__" else phase_of_name(span.name)


def _with_parts(calls: Sequence[Span], parts: Sequence[Span]) -> Iterator[list[Span]]:
    """Each call with the parts that lie in it and in no other; parts of calls that run at once cannot be told apart and stand alone."""
    ordered = sorted(parts, key=lambda s: s.start_ns)
    alone: list[Span] = []
    groups: list[list[Span]] = [[c] for c in calls]
    open_calls: list[int] = []
    upcoming = 0
    for part in ordered:
        while upcoming < len(calls) and calls[upcoming].start_ns <= part.start_ns:
            open_calls.append(upcoming)
            upcoming += 1
        open_calls = [i for i in open_calls if (calls[i].end_ns or 0) > part.start_ns]
        holders = [i for i in open_calls if (calls[i].end_ns or 0) >= (part.end_ns or 0)]
        if len(holders) == 1:
            groups[holders[0]].append(part)
        else:
            alone.append(part)
    yield from groups
    yield from ([p] for p in alone)


def _phases(place: TrackPlace, runs: Sequence[Any], steps: Steps, origin: str) -> Iterator[Batch]:
    track = Track((*place.path, "phase"), place.clock, "async", origin, rank=place.label)
    for run in runs:
        step = steps.at(run.start_ns)
        yield Batch(track, [Span(run.start_ns, run.end_ns, run.phase, "phase", (("step", step),), run.phase, step)])
