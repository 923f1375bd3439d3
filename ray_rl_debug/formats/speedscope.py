"""Profiles in Speedscope's JSON, as ``py-spy record --format speedscope`` writes them: where each thread was most of the time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from ray_rl_debug.formats.dump import CodePlace, Dump, DumpThread
from ray_rl_debug.model.errors import UnreadableFileError

SIGN = b"speedscope.app/file-format"
SECOND_SHARE = 0.1
"""Of a thread's samples, in any kind of profile: from here on its second stack counts as another place where it was."""
MAX_FRAMES = 500
_NAME = re.compile(r"(?:Process (?P<pid>\d{1,9}))?.{0,200}?[Tt]hread (?P<tid>0x[0-9a-fA-F]+|\d{1,9})(?: ?\(?\"?(?P<name>[^\"()]{1,120})\"?\)?)?")


def is_speedscope(data: bytes) -> bool:
    """Does it name Speedscope's schema?"""
    return SIGN in data[:4096] or SIGN in data[-4096:]


def read(plain: object) -> list[Dump]:
    """Two looks at each process: the stack that each thread was met in most, and the next where that counts.

    Raises:
        UnreadableFileError: another shape, or a profile of events.
    """
    if not isinstance(plain, Mapping) or not isinstance(plain.get("shared"), Mapping):
        raise UnreadableFileError("not a Speedscope profile")
    places = [_place(f) for f in _list(plain["shared"].get("frames"))]
    first: dict[int | None, Dump] = {}
    second: dict[int | None, Dump] = {}
    for profile in _list(plain.get("profiles")):
        if not isinstance(profile, Mapping) or profile.get("type") != "sampled":
            continue
        stacks = _heaviest(profile)
        if not stacks:
            continue
        named = _NAME.search(str(profile.get("name") or ""))
        tid = int(named["tid"]) if named and named["tid"].isdecimal() else None
        pid = int(named["pid"]) if named and named["pid"] else None
        seconds = _duration_s(profile)
        for dumps, stack, after_s in ((first, stacks[0], None), (second, stacks[-1], seconds)):
            dump = dumps.setdefault(pid, Dump(pid=pid, source="py-spy", threads=[], after_s=after_s))
            frames = [places[i] for i in reversed(stack) if 0 <= i < len(places)][:MAX_FRAMES]
            dump.threads.append(DumpThread(frames=frames, tid=tid, name=named["name"] if named else None))
    if not first:
        raise UnreadableFileError("a Speedscope profile without samples")
    return [d for pid in first for d in (first[pid], second[pid])]


def _heaviest(profile: Mapping[str, object]) -> list[tuple[int, ...]]:
    """The one or two stacks (outermost frame first) that weigh most."""
    weights = _list(profile.get("weights"))
    count: Counter[tuple[int, ...]] = Counter()
    for position, sample in enumerate(_list(profile.get("samples"))):
        weight = weights[position] if position < len(weights) else 1
        if isinstance(sample, list) and all(isinstance(i, int) for i in sample):
            count[tuple(sample)] += weight if isinstance(weight, int | float) and weight > 0 else 1  # type: ignore[assignment]
    best = [(stack, n) for stack, n in count.most_common(2) if stack]
    whole = sum(count.values())
    return [stack for position, (stack, n) in enumerate(best) if position == 0 or n >= SECOND_SHARE * whole]


def _duration_s(profile: Mapping[str, object]) -> float | None:
    start, end = profile.get("startValue"), profile.get("endValue")
    if profile.get("unit") != "seconds" or not isinstance(start, int | float) or not isinstance(end, int | float) or not 0 < end - start < 1e9:
        return None
    return float(end - start)


def _place(frame: object) -> CodePlace:
    if not isinstance(frame, Mapping):
        return ("?", "", 0)
    line = frame.get("line")
    return (str(frame.get("name") or "?")[:400], str(frame.get("file") or "")[:400], line if isinstance(line, int) and 0 < line < 1 << 31 else 0)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
