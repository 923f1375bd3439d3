"""The telling thread of a process in every sample, found again by what the report says of it."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.model.report import ProcessSummary, Report
from ray_rl_debug.model.snapshot import Frame, Node, Process, Sample, Snapshot, ThreadSample


def line_of(frame: Frame) -> str:
    """``function (file:line)``, as the report writes its stacks."""
    return f"{frame.function} ({frame.file}{f':{frame.line}' if frame.line else ''})"


def frames_of(node: Node, stack: int) -> tuple[Frame, ...]:
    """The frames of an interned stack, innermost first; indexes that point nowhere (a damaged file) are left out."""
    if not 0 <= stack < len(node.stacks):
        return ()
    return tuple(node.frames[i] for i in node.stacks[stack] if 0 <= i < len(node.frames))


def summaries_by_place(report: Report) -> dict[tuple[str | None, int | None], ProcessSummary]:
    """What the report says of each process, by node and pid."""
    return {(p.who.node, p.who.pid): p for p in report.processes}


def sampled(report: Report, snapshot: Snapshot) -> Iterator[tuple[Node, Process, ProcessSummary | None]]:
    """Every process that has stacks, in the order of the snapshot."""
    known = summaries_by_place(report)
    for node in snapshot.nodes:
        for process in node.processes:
            if process.samples:
                yield node, process, known.get((node.name, process.pid))


def telling_samples(node: Node, process: Process, summary: ProcessSummary | None) -> tuple[tuple[Sample, ThreadSample], ...]:
    """Each sample with the thread the report speaks of; samples in which that thread is missing are left out."""
    if not process.samples:
        return ()
    chosen = _chosen(node, process, summary)
    if chosen is None:
        return ()
    found = []
    for sample in process.samples:
        same = [t for t in sample.threads if t.tid == chosen.tid and t.name == chosen.name]
        if same:
            found.append((sample, same[0]))
    return tuple(found)


def _chosen(node: Node, process: Process, summary: ProcessSummary | None) -> ThreadSample | None:
    threads = process.samples[-1].threads
    if summary is not None and summary.stack:
        named = [t for t in threads if t.name == summary.thread] or threads
        for thread in named:
            frames = frames_of(node, thread.stack)
            if tuple(line_of(f) for f in frames[: len(summary.stack)]) == summary.stack:
                return thread
    return next((t for t in threads if t.tid == process.pid or t.name == "MainThread"), threads[0] if threads else None)
