"""Files that are several looks at the same processes, told by stamps in their names or folders: ``t0/rank_1.txt`` and ``t30/rank_1.txt``.

A stamp alone means nothing: it counts where names that are equal without it come with different stamps. How far apart the looks are is known where
the stamps are clocks or have a unit, and for ``t0`` and ``t30``; ``t0``, ``t1``, ``t2`` and ``look1``, ``look2`` only tell the order.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

import msgspec

from ray_rl_debug.imports.build import FileDumps

_BEGIN, _END = r"(?:^|[_.-])", r"(?=$|[_.-])"
_CLOCK = re.compile(_BEGIN + r"(\d{4})-?([01]\d)-?([0-3]\d)[_T-]?([0-2]\d)[-:.h]?([0-5]\d)[-:.m]?([0-5]\d)[sZ]?" + _END)
_UNIX = re.compile(_BEGIN + r"(1[5-9]\d{8})" + _END)
_UNIT = re.compile(_BEGIN + r"(?:t|after)?[_+=-]?(\d{1,6})(s|secs?|seconds|m|min|minutes|h)(?:[_-]later)?" + _END)
_NUMBERED = re.compile(_BEGIN + r"(?:t|look|sample|snap|take|round)[_+=-]?(\d{1,6})" + _END)
_SCALE = {"s": 1.0, "m": 60.0, "h": 3600.0}
_FEWEST_S = 5.0
"""Bare numbers as far apart as this are seconds, not counts."""


class Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """A name taken apart."""

    rest: str
    """Without the stamp."""
    order: float
    time_s: float | None
    """On a clock of its own; None where the stamp only tells the order."""
    is_bare: bool = False
    """A number that may be seconds or a count."""


def stamp_of(name: str) -> Stamp | None:
    """The stamp in the name of a file (without its ending) or of a folder; None where it has none."""
    if found := _CLOCK.search(name):
        try:
            year, month, day, hour, minute, second = (int(part) for part in found.groups())
            at = datetime.datetime(year, month, day, hour, minute, second, tzinfo=datetime.timezone.utc).timestamp()
        except ValueError:
            return None
        return Stamp(rest=_without(name, found), order=at, time_s=at)
    if found := _UNIX.search(name):
        return Stamp(rest=_without(name, found), order=float(found[1]), time_s=float(found[1]))
    if found := _UNIT.search(name):
        at = float(found[1]) * _SCALE[found[2][0]]
        return Stamp(rest=_without(name, found), order=at, time_s=at)
    if found := _NUMBERED.search(name):
        return Stamp(rest=_without(name, found), order=float(found[1]), time_s=None, is_bare=found[0].lstrip("_.-").startswith("t"))
    return None


def _without(name: str, found: re.Match[str]) -> str:
    return (name[: found.start()] + name[found.end() :]).strip("_.-")


def as_looks(files: Sequence[FileDumps]) -> list[FileDumps]:
    """The files in the order of their looks; those that are looks at the same processes have one folder, one name, and times as their stamps say."""
    found = list(files)
    groups: dict[Hashable, list[tuple[int, Stamp]]] = defaultdict(list)
    for position, file in enumerate(files):
        # A stamp of the name, of the folder, or of the folder above; all that is equal without it.
        if (own := stamp_of(file.stem)) is not None:
            groups["file", file.folder, file.node, own.rest].append((position, own))
        elif (folder := stamp_of(file.folder)) is not None:
            groups["folder", file.above, folder.rest, file.stem].append((position, folder))
        elif (above := stamp_of(file.above)) is not None:
            groups["above", above.rest, file.node, file.stem].append((position, above))
    order: dict[int, float] = {}
    for key, held in groups.items():
        stamps = [stamp for _, stamp in held]
        if len({s.order for s in stamps}) < 2:
            continue
        times = _times(stamps)
        first = min(files[position].time_s for position, _ in held)
        kind = key[0] if isinstance(key, tuple) else ""
        for position, stamp in held:
            file = files[position]
            order[position] = stamp.order
            found[position] = msgspec.structs.replace(
                file,
                stem=(stamp.rest or "stacks") if kind == "file" else file.stem,
                node=(stamp.rest or file.above or file.node) if kind == "folder" and file.node == file.folder else file.node,
                name=f"{file.folder}/{file.name}" if kind == "folder" else file.name,
                time_s=file.time_s if times is None else first + times[stamp.order],
            )
    return _in_order(found, order)


def _times(stamps: Iterable[Stamp]) -> Mapping[float, float] | None:
    """Seconds after the first look, by the stamps' order; None where they only tell the order."""
    orders = sorted({s.order for s in stamps})
    is_bare = all(s.is_bare for s in stamps) and orders[0] == 0 and min(b - a for a, b in itertools.pairwise(orders)) >= _FEWEST_S
    if not is_bare and any(s.time_s is None for s in stamps):
        return None
    return {order: order - orders[0] for order in orders}


def _in_order(files: Sequence[FileDumps], order: Mapping[int, float]) -> list[FileDumps]:
    """Stamped files by their stamps, in the places that stamped files have; all others stay."""
    places = sorted(order)
    stamped = iter(sorted(places, key=lambda p: (order[p], p)))
    return [files[next(stamped)] if position in order else file for position, file in enumerate(files)]
