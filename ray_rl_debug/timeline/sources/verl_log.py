"""verl's own timing: how long each phase of each step took, from the console or the file logger.

Only lengths are logged, no moments. Steps are laid end to end, so that the last one ends when the log was last written at the latest: lengths are
exact, moments are not, and the clock says so.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ray_rl_debug.analyze.phase import phase_of_name
from ray_rl_debug.timeline.layout import Layout
from ray_rl_debug.timeline.model import CLUSTER, Args, Batch, Clock, Span, Track
from ray_rl_debug.timeline.sources.json_stream import as_number, open_text
from ray_rl_debug.timeline.sources.trace_file import TraceFile

CONSOLE = re.compile(r"\bstep:(\d+) - .*\btiming_s/")
_METRIC = re.compile(r"(?:^| - )([A-Za-z_][\w./@-]*):(?:np\.\w+\()?(-?[\d.]+(?:e[+-]?\d+)?|nan|inf)\)?(?= - |\s*$)")
_STALENESS = "training/off_policy/trajectory_staleness"
_PHASES = {
    "gen": "rollout",
    "gen_max": "rollout",
    "reward": "reward",
    "old_log_prob": "logprob",
    "ref": "logprob",
    "RefPolicy": "logprob",
    "values": "values",
    "adv": "advantage",
    "update_critic": "update",
    "update_actor": "update",
    "update_weights": "weight_sync",
    "testing": "validation",
    "save_checkpoint": "checkpoint",
}
MAX_STEPS = 200_000


class VerlLogSource(TraceFile):
    """One log of verl's trainer."""

    def __init__(self, path: Path, layout: Layout) -> None:
        super().__init__(path)
        self._clock = f"verl {path.name}"
        self._node = next((n for n in layout.seen_nodes()), None) if len(layout.seen_nodes()) == 1 else None
        self._end_ns = 0

    def clocks(self) -> Sequence[Clock]:
        written = self.modified_ns()
        latest = written - self._end_ns if written is not None else None
        return [Clock(self._clock, self._node, True, None, latest, "verl logs lengths, laid end to end until the log's last write")]

    def _read(self) -> Iterator[Batch]:
        base = (CLUSTER, "verl trainer")
        phases = Track((*base, "phase"), self._clock, "span", f"timing_s of {self.name}", rank="verl trainer", is_summary=True)
        steps = Track((*base, "steps"), self._clock, "span", f"timing_s of {self.name}")
        at = 0
        for step, data in self._steps():
            timing = {k[9:]: v for k, v in data.items() if k.startswith("timing_s/") and "/" not in k[9:] and v >= 0}
            parts = _parts(step, timing, at)
            length = round(timing["step"] * 1e9) if "step" in timing else sum((p.end_ns or 0) - p.start_ns for p in parts)
            yield Batch(steps, [Span(at, at + length, f"step {step}", "step", _about(step, data), step=step)])
            if parts:
                yield Batch(phases, parts)
            at += length
        self._end_ns = at
        if at == 0:
            self._trouble("no timing of any step in it")

    def _steps(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Step number and numeric metrics, for each step the log tells."""
        count = damaged = 0
        try:
            with open_text(self.path) as f:
                for line in f:
                    try:
                        found = _of_file(line) if line.startswith("{") else _of_console(line)
                    except ValueError:
                        damaged += 1
                        continue
                    if found is not None:
                        count += 1
                        yield found
                    if count >= MAX_STEPS:
                        self._trouble(f"more than {MAX_STEPS:,} steps; the first ones were used")
                        break
        except (OSError, EOFError, zlib.error):
            self._trouble(f"cut off after {count} steps, which were used")
        if damaged:
            self._trouble(f"{damaged:,} lines are damaged or cut off; the others were used")


def _parts(step: int, timing: dict[str, float], at: int) -> list[Span]:
    """The step's phases in the order of their log, one after the other."""
    spans = []
    for name, length_s in timing.items():
        phase = _PHASES.get(name) or (phase_of_name(name) if name != "step" else None)
        if phase is None or (name == "gen_max" and "gen" in timing):
            continue
        length = round(length_s * 1e9)
        spans.append(Span(at, at + length, name, "phase", (("step", step),), phase, step))
        at += length
    return spans


def _about(step: int, data: dict[str, float]) -> Args:
    found: list[tuple[str, str | int | float | bool]] = [("step", step)]
    for key, name in (
        (f"{_STALENESS}/mean", "staleness_mean"),
        (f"{_STALENESS}/max", "staleness_max"),
        ("critic/score/mean", "score_mean"),
        ("perf/throughput", "tokens_per_s_per_gpu"),
    ):
        if key in data:
            found.append((name, data[key]))
    return tuple(found)


def _of_file(line: str) -> tuple[int, dict[str, float]] | None:
    """Raises ValueError for a line that is damaged or cut off."""
    row = json.loads(line)
    if not isinstance(row, dict) or not isinstance(row.get("step"), int) or not isinstance(row.get("data"), dict):
        return None
    data = {k: n for k, v in row["data"].items() if (n := as_number(v)) is not None}
    return (row["step"], data) if any(k.startswith("timing_s/") for k in data) else None


def _of_console(line: str) -> tuple[int, dict[str, float]] | None:
    found = CONSOLE.search(line)
    if found is None:
        return None
    rest = line[found.end(1) :]
    return int(found[1]), {k: n for k, v in _METRIC.findall(rest) if (n := as_number(float(v))) is not None}
