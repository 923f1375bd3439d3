"""What the local variables of library frames tell of a wait: whom it names, and whether it is still the same one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ray_rl_debug.analyze.frameworks.compiled_graphs import RESULTS
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.model.snapshot import Frame, Local, ThreadSample

_LOCALS = frozenset({"waiter", RESULTS[1], "timeout", "src", "dst", "group_src", "group_dst"})


def telling_locals(locals_: Sequence[Local], kind: Kind) -> tuple[tuple[int, str, str], ...]:
    """The only locals at which `waiter_of` and `peer_of` look, of a thread at a place of this kind."""
    joins = kind is Kind.JOIN
    return tuple([(x.frame, x.name, x.value) for x in locals_ if x.name in _LOCALS or (joins and x.name == "self")])


def waiter_of(sample: ThreadSample | None, frames: Sequence[Frame]) -> str | None:
    """What makes a wait without a time limit another one than the next: the lock that ``Condition.wait`` makes for it, the thread that is joined,
    the step of a compiled graph."""
    told = {(local.frame, local.name): local.value for local in sample.locals} if sample is not None else {}
    for (frame, name), value in told.items():
        function = short_name(frames[frame].function) if frame < len(frames) else ""
        if (function, name) == RESULTS:
            return value
        is_wait = (name == "waiter" and function == "wait") or (name == "self" and function == "join" and frames[frame].file == "threading.py")
        if is_wait and told.get((frame, "timeout")) == "None":
            return value
    return None


def peer_of(sample: ThreadSample | None, frames: Sequence[Frame]) -> int | None:
    """The rank that a send, recv or rooted collective names."""
    if sample is None:
        return None
    for wanted in ("src", "dst", "group_src", "group_dst"):
        for local in sample.locals:
            if local.name == wanted and local.frame < len(frames) and local.value.lstrip("-").isdigit():
                return int(local.value)
    return None


def given_limit_s(frames: Sequence[Frame], told: Iterable[Local]) -> float | None:
    """The time limit with which a loop has called its selector; that of ``poll`` is counted in milliseconds there. None: none, or not told."""
    value = next((local.value for local in told if local.frame == 0 and local.name == "timeout"), "")
    if not frames or not _NUMBER.fullmatch(value) or not float(value):
        return None
    return float(value) / 1000 if frames[0].function.startswith(_IN_MILLISECONDS) else float(value)


_NUMBER = re.compile(r"\d{1,9}(\.\d{1,20})?")
_IN_MILLISECONDS = ("_PollLikeSelector.", "PollSelector.", "DevpollSelector.")
