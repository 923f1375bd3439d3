"""Posts and their truth: what a report says of each, compared with what it should."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.report import Certainty, Finding, Report
from ray_rl_debug.model.snapshot import Snapshot

HERE = Path(__file__).resolve().parent


class Outcome(msgspec.Struct, kw_only=True):
    """What became of one post."""

    name: str
    form: str
    truth: dict[str, Any]
    counts: dict[str, int]
    report: Report | None = None
    hint: str = ""
    """Of the error, where a post tells nothing of any process."""

    @property
    def is_read(self) -> bool:
        """Was every stack read? Where the truth has no numbers, one stack must have been."""
        wanted = self.truth.get("read")
        if wanted is None:
            return self.report is not None
        return all(self.counts.get(key) == number for key, number in wanted.items())

    @property
    def roots(self) -> list[Finding]:
        return [f for f in self.report.findings if f.root] if self.report is not None else []

    @property
    def is_named(self) -> bool:
        """Is the first hypothesis an established cause, and does it name the right one? Where the truth allows it, none is right too."""
        first = next(iter(self.roots), None)
        if first is None:
            return "none" in self.truth["acceptable_causes"]
        return first.cause.value in self._causes and self._names(first)

    @property
    def accuses_wrongly(self) -> bool:
        """Does a finding say *likely* or more of a cause or a process that it is not?"""
        sure = [f for f in self.roots if f.certainty is not Certainty.POSSIBLE]
        return any(f.cause.value not in self._causes or not self._names(f) for f in sure)

    @property
    def advice(self) -> str:
        """What the report would have dumped next."""
        dumps = self.report.next_dumps if self.report is not None else ()
        return " ".join(str(value) for dump in dumps for value in msgspec.structs.astuple(dump)) or self.hint

    @property
    def tells_next(self) -> bool:
        """Does it say what to dump next, in the words of the truth?"""
        return bool(self.advice) and all(word.lower() in self.advice.lower() for word in self.truth.get("next", ()))

    @property
    def is_established(self) -> bool:
        return bool(self.truth["cause"] != "none")

    @property
    def _causes(self) -> frozenset[str]:
        return frozenset(c for c in (self.truth["cause"], *self.truth["acceptable_causes"]) if c != "none")

    def _names(self, finding: Finding) -> bool:
        wanted = self.truth.get("who") or ()
        named = {str(v) for w in finding.who for v in (w.pid, w.rank, w.label) if v is not None}
        return not wanted or any(want == n or n.endswith(f"/{want}") or want in n.split() for want in wanted for n in named)


def counts_of(snapshot: Snapshot) -> dict[str, int]:
    """Processes, stacks of threads and frames of a snapshot, asyncio tasks as threads and their coroutines as frames."""
    threads = [(n, t) for n in snapshot.nodes for p in n.processes for s in p.samples for t in s.threads]
    tasks = [t for n in snapshot.nodes for p in n.processes for t in p.async_tasks or ()]
    return {
        "processes": sum(len(n.processes) for n in snapshot.nodes),
        "threads": len(threads) + len(tasks),
        "frames": sum(len(n.stacks[t.stack]) for n, t in threads) + sum(len(t.chain) for t in tasks),
    }


def look(folder: Path) -> Outcome:
    """One post, read and reported."""
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    files = sorted(p for p in folder.iterdir() if p.name != "truth.json" and not p.name.startswith("."))
    found = Outcome(name=folder.name, form=truth.get("form", ""), truth=truth, counts={})
    try:
        snapshot = load(files).snapshot
    except UnreadableFileError as e:
        snapshot, found.hint = None, e.hint
    if snapshot is not None:
        found.counts = counts_of(snapshot)
        found.report = diagnose(snapshot)
    return found


def outcomes(folder: Path = HERE) -> Iterator[Outcome]:
    """Each post of a folder."""
    for truth_file in sorted(folder.glob("*/truth.json")):
        yield look(truth_file.parent)


def percent(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.0f} %)" if whole else "0 of 0"
