"""Tracebacks of processes that do the same, mixed line by line: every line stands as often as there are processes, until each goes on alone.

The copies of a line are of different processes. Behind them each may have one frame of its own: as all have come the same way, which of them
goes on with it does not matter. With more lines of their own nobody can tell which belong together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_FRAME = re.compile(r"[ >]{0,8}File \"[^\"]{1,400}\", line \d{1,7}, in ")
_SOURCE = re.compile(r" {4,12}(?=\S)")


def in_step(rows: Sequence[str], count: int) -> tuple[int, ...] | None:
    """To which of the tracebacks each line goes; None where that cannot be told.

    Args:
        rows: Frames, their sources and the errors at the end, of all of them.
        count: Tracebacks.
    """
    times = Counter(row.strip() for row in rows)
    frames = [row.strip() for row in rows if _FRAME.match(row)]
    alone = [frame for frame in frames if times[frame] == 1]
    if not frames or len(alone) > count or any(times[frame] not in (1, count) for frame in frames) or len(alone) * 2 > len(frames):
        return None
    given: list[int] = []
    seen: Counter[str] = Counter()
    own = 0
    for row in rows:
        told = row.strip()
        if _FRAME.match(row) and times[told] == 1:
            given.append(own)
            own += 1
        elif _SOURCE.match(row) and times[told] == 1:
            given.append(max(own - 1, 0))
        elif own and _SOURCE.match(row) and times[told] != count:
            return None
        else:
            given.append(seen[told] % count)
            seen[told] += 1
    return tuple(given)
