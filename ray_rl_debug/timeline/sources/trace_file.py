"""What the readers of trace files have in common: read twice, in batches of bounded size, troubles told once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Gap
from ray_rl_debug.timeline.model import Batch, Clock, Item, SharedEnd, Track

BATCH_ITEMS = 2_000
MAX_HELD = 8_000
"""Items of all rows of one file that are held at once."""


def in_batches(pairs: Iterable[tuple[Track, Item]]) -> Iterator[Batch]:
    """Items gathered by track."""
    held: dict[Track, list[Item]] = defaultdict(list)
    count = 0
    for track, item in pairs:
        items = held[track]
        items.append(item)
        count += 1
        if len(items) >= BATCH_ITEMS:
            yield Batch(track, held.pop(track))
            count -= len(items)
        elif count >= MAX_HELD:
            yield from (Batch(t, i) for t, i in held.items())
            held.clear()
            count = 0
    yield from (Batch(t, i) for t, i in held.items())


class TraceFile:
    """One file as a source. A reader gives `_read`; clocks and shared moments are complete after the first reading."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.path = path
        self.gaps: list[Gap] = []
        self._is_first = True

    def clocks(self) -> Sequence[Clock]:
        return ()

    def shared_ends(self) -> Sequence[SharedEnd]:
        return ()

    def batches(self) -> Iterator[Batch]:
        yield from self._read()
        self._is_first = False

    def _read(self) -> Iterator[Batch]:
        raise NotImplementedError

    def _trouble(self, sentence: str) -> None:
        if self._is_first:
            self.gaps.append(Gap(id=gaps.FILE_UNREAD, where=self.name, what="part of this file", reason=sentence))

    def modified_ns(self) -> int | None:
        """When the file was last written: not after this moment was its content recorded."""
        try:
            return self.path.stat().st_mtime_ns
        except OSError:
            return None
