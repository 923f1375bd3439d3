"""What several parts of the page look up: processes by place, the kind of place each stands in, who is accused."""

from __future__ import annotations

import msgspec

from ray_rl_debug.model.report import AwaitClass, Certainty, ProcessSummary, Report, Who
from ray_rl_debug.model.snapshot import Node, Process, Snapshot
from ray_rl_debug.render.samples import frames_of, line_of

GROUPS = {
    "collective": "ranks", "p2p": "ranks", "rendezvous": "ranks", "new_group": "ranks", "destroy": "ranks",
    "ray.get": "ray", "ray.wait": "ray", "ray.init": "ray",
    "join": "thread", "future": "thread", "event": "thread", "queue": "thread", "lock": "thread", "mp-queue": "thread", "child": "thread",
    "dataloader": "thread",
    "socket": "io", "file": "io", "flock": "io", "sleep": "io", "cuda": "gpu",
    "ray-idle": "idle", "loop-idle": "idle", "idle": "idle", "code": "code",
}  # fmt: skip
"""Kinds of places in seven groups that can be told apart by colour and letter."""

GROUP_WORDS = {
    "ranks": ("C", "waits for other ranks (collective, send, receive, start-up)"),
    "ray": ("R", "waits for a Ray result"),
    "thread": ("L", "waits for a thread, lock, queue or child"),
    "io": ("I", "waits in a file, socket or sleep call"),
    "gpu": ("G", "waits for the GPU"),
    "code": ("•", "in its own code"),
    "idle": ("·", "idle"),
    "blind": ("?", "seen, but no stack"),
    "missing": ("×", "rank not seen"),
}


class Book(msgspec.Struct, frozen=True):
    """Lookups over one report and its snapshot."""

    report: Report
    snapshot: Snapshot | None
    index: dict[tuple[str | None, int | str], int]
    """Position in `Report.processes` by node and pid; by label where a saved stack has no pid."""
    kinds: dict[tuple[str, ...], str]
    """Kind of place by stack."""
    class_of: dict[tuple[str, ...], int]
    """Position in `Report.classes` by stack."""
    accused: frozenset[tuple[str | None, int | None]]
    victims: frozenset[tuple[str | None, int | None]]
    labels: frozenset[str]
    """Labels of the accused."""
    is_sure: bool
    """Is the root finding more than possible?"""
    raw: dict[tuple[str | None, int | None], tuple[Node, Process]]

    def process(self, who: Who) -> ProcessSummary | None:
        position = self.index.get(_key(who))
        return self.report.processes[position] if position is not None else None

    def anchor(self, who: Who) -> str | None:
        """The id of the process's row in the raw facts."""
        position = self.index.get(_key(who))
        return f"p{position}" if position is not None else None

    def group(self, process: ProcessSummary) -> str:
        """One of `GROUP_WORDS`."""
        if not process.stack:
            return "blind"
        return GROUPS.get(self.kinds.get(process.stack, "code"), "code")

    def stack(self, who: Who) -> tuple[str | None, tuple[str, ...]]:
        """Name and stack of the thread `who` speaks of, where the snapshot has it; else the telling thread of its process."""
        process = self.process(who)
        told = (process.thread, process.stack) if process is not None else (None, ())
        found = self.raw.get((who.node, who.pid)) if who.thread and who.thread != told[0] else None
        if found is None or not found[1].samples:
            return told
        node, one = found
        for thread in one.samples[-1].threads:
            if who.thread in (thread.name, str(thread.tid)):
                return who.thread, tuple(line_of(f) for f in frames_of(node, thread.stack))
        return told

    def awaits(self, who: Who) -> list[AwaitClass]:
        """Coroutines of a process, where they were read."""
        return [a for a in self.report.awaits if who.pid is not None and (a.node, a.pid) == (who.node, who.pid)]

    def is_idle(self, who: Who) -> bool:
        process = self.process(who)
        return process is not None and self.group(process) == "idle"

    def doing(self, who: Who) -> str | None:
        """What a process does; one whose threads are idle may have coroutines that wait."""
        process = self.process(who)
        if process is None:
            return None
        waits = [a for a in self.awaits(who) if not a.is_at_rest] if self.is_idle(who) else []
        if not waits:
            return process.doing
        most = max(waits, key=lambda a: a.count)
        goal = f" for {most.awaited}" if most.awaited else ""
        return f"{most.count:,} asyncio {'tasks wait' if most.count > 1 else 'task waits'}{goal}"

    def is_accused(self, who: Who) -> bool:
        return (who.node, who.pid) in self.accused if who.pid is not None else who.label in self.labels


def open_book(report: Report, snapshot: Snapshot | None) -> Book:
    """Index a report; findings at the root accuse, or all findings where none is a root."""
    roots = [f for f in report.findings if f.root] or list(report.findings)
    return Book(
        report=report,
        snapshot=snapshot,
        index={_key(p.who): i for i, p in enumerate(report.processes)},
        kinds={c.frames: c.kind for c in report.classes},
        class_of={c.frames: i for i, c in enumerate(report.classes)},
        accused=frozenset((w.node, w.pid) for f in roots for w in f.who if w.pid is not None),
        victims=frozenset((w.node, w.pid) for f in roots for w in f.victims if w.pid is not None),
        is_sure=any(f.certainty is not Certainty.POSSIBLE for f in roots),
        labels=frozenset(w.label for f in roots for w in f.who),
        raw={(n.name, p.pid): (n, p) for n in snapshot.nodes for p in n.processes} if snapshot is not None else {},
    )


def _key(who: Who) -> tuple[str | None, int | str]:
    return who.node, who.pid if who.pid is not None else who.label
