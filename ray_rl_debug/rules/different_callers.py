"""Where ranks in one call were called from: what to name when their own lines are the same."""

from __future__ import annotations

from ray_rl_debug.analyze.seen import Seen


def callers(one: Seen, other: Seen) -> tuple[str, str]:
    """``, called from decode (rollout.py:9)`` for each of two that stand at one line: the innermost frames that differ; empty where others do."""
    if one.place is None or other.place is None or one.at() != other.at():
        return "", ""
    for here, there in zip(one.place.path[1:], other.place.path[1:], strict=False):
        if here != there:
            return _from(here), _from(there)
    return "", ""


def _from(frame: tuple[str, str, int | None]) -> str:
    function, file, line = frame
    at = f" ({file.rsplit('/', 1)[-1]}{f':{line}' if line else ''})" if file else ""
    return f", called from {function}{at}"
