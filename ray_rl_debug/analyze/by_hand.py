"""Stacks that people collected by hand, without a tool that sees the kernel, the environment or the time: what is assumed of them.

Who gives files to ``report`` says that the job hangs. Then a later look would show what the last one has shown. So each process that was dumped
once, or several times within moments, gets one more look, equal to the last, and the law of waiting judges as it always does. Whatever rests on
such a look is only *possible*: it is true if the run hangs.
"""

from __future__ import annotations

import msgspec

from ray_rl_debug.model.snapshot import Process, Sample, Snapshot

ASSUMED = "assumed"
"""Source of a sample that nobody took."""
HUNG_FOR = "hung_for_s"
"""Option of a snapshot: for how long the run has hung, in seconds, as its user says or the companion has seen."""


def is_by_hand(snapshot: Snapshot) -> bool:
    """Was it made from files that other tools wrote, and nothing in it was measured by us?"""
    return snapshot.options.get("imported") is True and all(p.window_s is None for n in snapshot.nodes for p in n.processes)


def hung_for_s(snapshot: Snapshot) -> float | None:
    """For how long the run has hung, as somebody says who was there; None where nobody said."""
    told = snapshot.options.get(HUNG_FOR)
    return float(told) if isinstance(told, int | float) else None


def said_to_hang(snapshot: Snapshot, seconds: float) -> Snapshot:
    """The snapshot with what its user or the companion says: the run has hung for so long."""
    return msgspec.structs.replace(snapshot, options={**snapshot.options, HUNG_FOR: seconds})


def is_stacks_alone(process: Process) -> bool:
    """Is a process known by its stacks only, without anything that was measured over a time?"""
    return bool(process.samples) and process.window_s is None


FAR_APART_S = 30.0
"""Between two looks that show the same, for it to mean more than that a step takes its time: stacks do not show a pause that will end."""


def is_assumed(process: Process) -> bool:
    """Is its last look one that nobody took?"""
    return bool(process.samples) and process.samples[-1].source == ASSUMED


def looks(process: Process) -> tuple[Sample, ...]:
    """The looks that somebody took."""
    return tuple(s for s in process.samples if s.source != ASSUMED)


def apart_s(process: Process) -> float:
    """Time between the first and the last look; 0 where it is not known."""
    taken = looks(process)
    told = max((r.apart_s or 0.0 for r in process.remarks if r.kind == "apart"), default=0.0)
    return max(told, taken[-1].at_s - taken[0].at_s) if len(taken) > 1 else 0.0


def how_often(process: Process) -> str:
    """How often it was met where it is, after "it was": ``seen once``."""
    taken = len(looks(process))
    if taken < 2:
        return "seen once"
    apart = apart_s(process)
    return f"seen in the same place {taken} times, {f'within {apart:.0f} s' if apart >= 1 else 'at times that are not known'}"


def why_assumed(process: Process) -> str:
    """Why it is taken to stand still, after "it was"."""
    often = how_often(process)
    return f"{often}{',' if ',' in often else ''} and taken to stand still because the run is said to hang".replace("once and", "once, and")


def source_of(process: Process) -> str | None:
    """``node7.txt:12``: file and line of its last look; None where no file is known."""
    for last in reversed(process.samples):
        if last.source != ASSUMED:
            return f"{last.file}:{last.line}" if last.file is not None and last.line else last.file
    return None


def stands_for(process: Process) -> int:
    """How many ranks a stack stands for, by what its file says ("7 ranks identical"); one where it says nothing."""
    if not process.remarks:
        return 1
    same = [r for r in process.remarks if r.kind == "same"]
    # "the others the same": at least one more
    return max([1, *(r.count or max(2, len(r.ranks) + 1) for r in same)])


def ranks_told(process: Process) -> frozenset[int]:
    """Ranks of which a file says that they stand where this process does."""
    return frozenset(r for remark in process.remarks if remark.kind == "same" for r in remark.ranks) if process.remarks else frozenset()


def with_later_looks(snapshot: Snapshot) -> Snapshot:
    """The snapshot as it would be if all stand still who were not looked at twice at a distance; itself where it was not made by hand."""
    if not is_by_hand(snapshot):
        return snapshot
    is_long = (hung_for_s(snapshot) or 0.0) >= FAR_APART_S
    nodes = (msgspec.structs.replace(n, processes=tuple(_looked_at_later(p, is_long=is_long) for p in n.processes)) for n in snapshot.nodes)
    return msgspec.structs.replace(snapshot, nodes=tuple(nodes))


def _looked_at_later(process: Process, *, is_long: bool) -> Process:
    if not is_stacks_alone(process) or (len(process.samples) > 1 and (is_long or apart_s(process) >= FAR_APART_S)):
        return process
    later = msgspec.structs.replace(process.samples[-1], source=ASSUMED)
    return msgspec.structs.replace(process, samples=(*process.samples, later))
