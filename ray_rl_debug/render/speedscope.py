"""The stacks as a file for https://www.speedscope.app, in its own format (``file-format-schema.json``).

The first profile holds one stack of every process, weighted by how many processes stand there; then one sampled profile a process,
in seconds of the capture, those of the accused first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from ray_rl_debug.model.report import ProcessSummary, Report
from ray_rl_debug.model.snapshot import Frame, Node, Process, Snapshot
from ray_rl_debug.render.samples import frames_of, sampled, telling_samples
from ray_rl_debug.render.writer import neutralise

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


class _Frames:
    """speedscope's shared table of frames."""

    def __init__(self) -> None:
        self.table: list[dict[str, str | int]] = []
        self._index: dict[tuple[str, str | None, int | None], int] = {}

    def add(self, name: str, file: str | None = None, line: int | None = None) -> int:
        key = (name, file, line)
        if key not in self._index:
            self._index[key] = len(self.table)
            entry: dict[str, str | int] = {"name": neutralise(name)}
            if file:
                entry["file"] = neutralise(file)
            if line:
                entry["line"] = line
            self.table.append(entry)
        return self._index[key]

    def stack(self, frames: Sequence[Frame]) -> list[int]:
        """Outermost first, as speedscope wants it."""
        return [self.add(f.function, f.file, f.line) for f in reversed(frames)]


def render(report: Report, snapshot: Snapshot | None = None) -> str:
    """One JSON document; without a snapshot only the profile of all processes."""
    frames = _Frames()
    accused = {(w.node, w.pid) for f in report.findings for w in f.who if w.pid is not None}
    profiles: list[tuple[bool, dict[str, object]]] = []
    for node, process, summary in sampled(report, snapshot) if snapshot is not None else ():
        profile = _process(node, process, summary, frames)
        if profile is not None:
            profiles.append(((node.name, process.pid) in accused, profile))
    profiles.sort(key=lambda p: not p[0])
    document = {
        "$schema": SCHEMA,
        "name": neutralise(f"{report.verdict.state.value}: {report.verdict.summary}"),
        "exporter": neutralise(f"rayrl-debug {report.tool_version}".strip()),
        "activeProfileIndex": 0,
        "shared": {"frames": frames.table},
        "profiles": [_everybody(report, frames), *(p for _, p in profiles)],
    }
    return json.dumps(document, separators=(",", ":"))


def _everybody(report: Report, frames: _Frames) -> dict[str, object]:
    """Every process's stack once, the smallest groups first."""
    classes = sorted(report.classes, key=lambda c: len(c.members))
    stacks = [[frames.add(line) for line in reversed(c.frames)] for c in classes]
    return _profile("all processes", "none", 0, stacks, [float(len(c.members)) for c in classes])


def _process(node: Node, process: Process, summary: ProcessSummary | None, frames: _Frames) -> dict[str, object] | None:
    seen = telling_samples(node, process, summary)
    if not seen:
        return None
    moments = [sample.at_s for sample, _ in seen]
    gaps = [max(0.0, b - a) for a, b in pairwise(moments)]
    # A sample stands for the time until the next one; the last for as long as the one before it, since nothing says more.
    weights = [*gaps, gaps[-1] if gaps else 1.0]
    label = summary.who.label if summary else process.title
    thread = seen[-1][1].name or "thread"
    name = f"{label} · {thread} ({node.name} pid {process.pid})"
    return _profile(name, "seconds", moments[0], [frames.stack(frames_of(node, t.stack)) for _, t in seen], weights)


def _profile(name: str, unit: str, start: float, samples: list[list[int]], weights: list[float]) -> dict[str, object]:
    return {
        "type": "sampled",
        "name": neutralise(name),
        "unit": unit,
        "startValue": start,
        "endValue": start + sum(weights),
        "samples": samples,
        "weights": weights,
    }
