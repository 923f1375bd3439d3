"""Numbers of an inference engine beside the steps, as ``metrics --follow --engine`` kept them in ``engine.jsonl``: one counter for each."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.timeline.model import CLUSTER, Batch, Count, Item, Track
from ray_rl_debug.timeline.sources.json_stream import as_number, read_objects, unix_ns
from ray_rl_debug.timeline.sources.trace_file import TraceFile, in_batches

ORIGIN = "rayrl-debug metrics --engine"
COUNTERS = {
    "running": ("requests running", "requests", 1.0),
    "waiting": ("requests waiting", "requests", 1.0),
    "kv_usage": ("cache used", "%", 100.0),
    "tokens_per_s": ("tokens generated", "tokens/s", 1.0),
    "preemptions": ("preemptions", "requests", 1.0),
    "step": ("step of the trainer", "step", 1.0),
}
"""Field of a line: what it is called in the trace, its unit, and what it is multiplied by."""


def is_engine_numbers(line: str) -> bool:
    """Is it the first line of such a file?"""
    return '"time_s"' in line and '"kind"' not in line and any(f'"{field}"' in line for field in (*COUNTERS, "reason"))


class EngineNumbersSource(TraceFile):
    """One ``engine.jsonl``."""

    def _read(self) -> Iterator[Batch]:
        yield from in_batches(self._pairs())

    def _pairs(self) -> Iterator[tuple[Track, Item]]:
        foreign = 0
        for row in read_objects(self.path, self._trouble):
            time_s = as_number(row.get("time_s"))
            if time_s is None:
                foreign += 1
                continue
            for field, (name, unit, factor) in COUNTERS.items():
                value = as_number(row.get(field))
                if value is not None:
                    yield Track((CLUSTER, f"engine: {name}"), kind="counter", origin=ORIGIN, unit=unit), Count(unix_ns(time_s), value * factor)
        if foreign:
            self._trouble(f"{foreign:,} lines hold no time and were left out")
