"""What the companion noted while it watched: its events as instants, the age of the last progress as a counter."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.timeline.model import CLUSTER, Args, Batch, Count, Instant, Item, Track
from ray_rl_debug.timeline.sources.json_stream import as_number, read_objects, unix_ns
from ray_rl_debug.timeline.sources.trace_file import TraceFile, in_batches

ORIGIN = "rayrl-debug watch"


class WatchHistorySource(TraceFile):
    """One ``history.jsonl``."""

    def _read(self) -> Iterator[Batch]:
        yield from in_batches(self._pairs())

    def _pairs(self) -> Iterator[tuple[Track, Item]]:
        foreign = 0
        events = Track((CLUSTER, "companion"), kind="instant", origin=ORIGIN)
        for row in read_objects(self.path, self._trouble):
            time_s, kind = as_number(row.get("time_s")), row.get("kind")
            if time_s is None or not isinstance(kind, str):
                foreign += 1
                continue
            at = unix_ns(time_s)
            shown: Args = tuple((k, v) for k in ("text", "state", "folder") if isinstance(v := row.get(k), str))
            yield events, Instant(at, kind, "companion", shown)
            numbers = row.get("numbers")
            for name, value in {"since progress": row.get("age_s"), **(numbers if isinstance(numbers, dict) else {})}.items():
                found = as_number(value)
                if found is not None:
                    unit = "s" if name == "since progress" else None
                    yield Track((CLUSTER, f"companion: {name}"), kind="counter", origin=ORIGIN, unit=unit), Count(at, found)
        if foreign:
            self._trouble(f"{foreign:,} lines are no events and were left out")
