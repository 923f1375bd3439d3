"""Files of one program without ranks: the processes that run it are taken for one world, and a line at which most of them stand for a wait.

A program is known by where it begins: the outermost frame of own code. A stack that was cut off is of the program with which it shares most
frames.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.by_hand import stands_for
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RANKS, WAITS_FOR_RAY, Kind
from ray_rl_debug.analyze.main_activity import is_in_backward
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen

Entry = tuple[str, str]
"""Function and file of the outermost frame of own code."""
COMMON_WAIT = "a common wait"
"""Operation of a line of own code at which most ranks stand."""
ENOUGH = 3
"""Processes that are met at one line of own code by no chance: each would have to spend nearly all its time there."""
_BEGINS = ("<module>", "_start", "main_loop", "_bootstrap", "spawn_main", "clone", "_run_module_as_main", "_clone3")


_NOWHERE: Entry = ("", "")
"""Of stacks without any frame of own code."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """Processes that run one program."""

    name: str
    keys: tuple[str, ...]


def find_programs(seen: Iterable[Seen]) -> tuple[Program, ...]:
    """The programs of processes in the order of their first process; parts of engines whose titles tell ranks are in worlds of their own."""
    groups: dict[object, list[Seen]] = defaultdict(list)
    cut: list[Seen] = []
    for one in (s for s in seen if s.threads and s.identity.rank_source != "title"):
        if one.identity.part is not None:
            groups[one.identity.part.part] += [one] if one.identity.part.part in ("core", "worker") else []
        elif one.process.kind == "ray-worker" and one.identity.class_name:
            groups[(one.identity.job_id, one.identity.class_name)].append(one)
        elif _begins(one) and (entry := _entry(one)) is not None:
            groups[entry].append(one)
        else:
            cut.append(one)
    looks = {key: {_look(m) for m in members} for key, members in groups.items()}
    for one in cut:
        mine = _look(one)
        shared = {key: max(_shared(mine, its) for its in known) for key, known in looks.items() if known}
        best = max(shared, key=lambda key: shared[key], default=_NOWHERE)
        key = best if shared.get(best) else _entry(one) or _NOWHERE
        groups[key].append(one)
        looks.setdefault(key, set()).add(mine)
    for members in groups.values():
        members[:] = [m for m in members if not _launches(m, members)] or members
    return tuple(Program(name=_name(members), keys=tuple(m.key for m in members)) for members in groups.values() if members)


def _launches(one: Seen, members: Sequence[Seen]) -> bool:
    """Does it only wait, near the begin of the program, for what it has started? Its ranks are deeper in the same script."""
    waits = one.kind in (Kind.CHILD, Kind.JOIN, Kind.MP_QUEUE, Kind.RAY_GET, Kind.RAY_WAIT)
    depth = len(_own_frames(one))
    return waits and depth < _DEEP and any(m is not one and len(_own_frames(m)) >= depth for m in members)


_DEEP = 3
"""Frames of own code that a rank at work has at least: script, main function, step."""


def _own_frames(one: Seen) -> list[Entry]:
    main = next((t for t in one.threads if t.is_main and t.place.path), None)
    thread = one.telling if one.telling is not None and one.telling.place.path else main
    return [(function, file) for function, file, _ in thread.place.path] if thread is not None else []


def _entry(one: Seen) -> Entry | None:
    return next(reversed(_own_frames(one)), None)


def _begins(one: Seen) -> bool:
    """Is the stack whole, down to where its thread begins?"""
    frames = one.telling.frames if one.telling is not None else ()
    return bool(frames) and frames[-1].function.rsplit(".", 1)[-1].startswith(_BEGINS)


_Look = tuple[frozenset[Entry], bool, str]
"""Frames of own code, whether it waits for other ranks, and its command line or name without numbers (``DP3``)."""
_NUMBERS = re.compile(r"\d+")


def _look(one: Seen) -> _Look:
    return frozenset(_own_frames(one)), one.kind in WAITS_FOR_RANKS, _NUMBERS.sub("", one.process.title)


def _shared(mine: _Look, its: _Look) -> int:
    """Frames of own code that both have; else whether both wait for ranks, or have one command line."""
    return len(mine[0] & its[0]) or int((mine[1] and its[1]) or (bool(mine[2]) and mine[2] == its[2]))


def _name(members: Sequence[Seen]) -> str:
    """``train.py``: where the program begins; ``job`` where that was cut off."""
    known = members[0].identity.class_name
    entry = next((e for m in members if _begins(m) and (e := _entry(m)) is not None), None)
    return known or (entry[1].rsplit("/", 1)[-1] if entry is not None else "job")


def settle_common_waits(seen: Mapping[str, Seen], programs: Sequence[Program]) -> Iterator[Seen]:
    """Those who stand at one line with most others of their program, told as waiting there for each other.

    If the run hangs, most of them do not compute: they wait for the GPU, and its kernel for the others.
    """
    groups = [[seen[key] for key in program.keys] for program in programs]
    by_world: dict[str, list[Seen]] = defaultdict(list)
    for one in seen.values():
        if one.identity.world is not None and one.threads:
            by_world[one.identity.role or one.identity.world].append(one)
    for members in [*groups, *by_world.values()]:
        standing = [m for m in members if m.place is not None and not m.is_idle and m.motion is not Motion.MOVING]
        places: dict[object, list[Seen]] = defaultdict(list)
        for one in standing:
            places[(one.kind, one.place.op, one.place.path) if one.place is not None else None].append(one)
        most = max(places.values(), key=_weight, default=[])
        if _weight(most) < 2 or 2 * _weight(most) <= _weight(standing):
            most = _at_gpu_beside_code(standing) or _in_backward_beside_code(standing)
        for one in most if _may_wait(most, members) else ():
            if one.telling is not None:
                place = msgspec.structs.replace(one.telling.place, kind=Kind.COLLECTIVE, op=_op(one))
                telling = msgspec.structs.replace(one.telling, place=place)
                yield msgspec.structs.replace(one, telling=telling, places=(place,) * len(one.places))


def _at_gpu_beside_code(standing: Sequence[Seen]) -> list[Seen]:
    """Those who wait for their GPUs, where as few others are elsewhere: that kernel is the collective which the others have not joined."""
    at_gpu = [one for one in standing if one.kind is Kind.CUDA]
    others = [one for one in standing if one.kind is not Kind.CUDA]
    lacks = bool(others) and not any(one.kind in _TOGETHER for one in others) and _weight(at_gpu) >= _weight(others)
    return at_gpu if lacks else []


_TOGETHER = WAITS_FOR_RANKS | WAITS_FOR_RAY
"""Waits of a rank for others of its program, and of one that is none."""


def _in_backward_beside_code(standing: Sequence[Seen]) -> list[Seen]:
    """Those in a backward pass, where all others run code of their own: what sums the gradients waits for those others."""
    within = [one for one in standing if one.telling is not None and one.telling.stack.once(is_in_backward)]
    others = [one for one in standing if one not in within]
    return within if others and all(one.kind is Kind.CODE for one in others) else []


def _weight(members: Sequence[Seen]) -> int:
    return sum(stands_for(m.process) for m in members)


def _may_wait(most: Sequence[Seen], members: Sequence[Seen]) -> bool:
    if not most:
        return False
    one = most[0]
    if one.kind is Kind.CUDA:
        return True
    if one.kind not in (Kind.CODE, Kind.LOCK) or one.telling is None:
        return False
    if one.telling.stack.once(is_in_backward):
        return True
    torch = any(f.file.startswith("torch/") for m in members for t in m.threads for f in t.frames)
    # of an engine that only turns its loops all parts may be met at one line
    parts = all(m.identity.part is not None for m in members) and len(most) < len(members)
    return (torch or parts or all(m.identity.rank is not None for m in members)) and _weight(most) >= ENOUGH


def _op(one: Seen) -> str:
    if one.telling is not None and one.telling.stack.once(is_in_backward):
        return "backward"
    return one.place.op if one.place is not None and one.kind is Kind.CUDA else COMMON_WAIT
