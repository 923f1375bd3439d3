"""RRD508 lock file left behind

Story
    A process that built an extension was killed, and its lock file stayed. Whoever needs the extension waits for that file
    to go away, in this run and in every later one.

Evidence
    The path of the lock file, its age, and that no process of the machine holds it open: its maker does until it is done.

Remedy
    End the run and remove the file; build extensions before the run, or in a folder of the run's own.

Not this when
    A process holds the file open (it builds, or stands itself), the file lies on a network mount (its maker may be on another
    machine), or the open files of a process that may have made it could not be read.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple

from ray_rl_debug.analyze.awaited_files import awaited_file, left_behind_s
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Cause, Certainty
from ray_rl_debug.rules.scene import Found, Scene, judge, make_finding, proc_evidence, stack_evidence, waits, weaker

ID = "RRD508"
NAME = "lock file left behind"
CAUSE = Cause.BLOCKED_IO


class _Waiter(NamedTuple):
    one: Seen
    certainty: Certainty
    age_s: float
    """Of the file, when the capture began."""


def detect(scene: Scene) -> Iterator[Found]:
    """Lock files that nobody will remove, each with all processes at which the waiting for it ends."""
    at: dict[tuple[str, str], list[_Waiter]] = {}
    for _, one in scene.process_roots():
        file, certainty = awaited_file(one), judge(scene, one).certainty
        age_s = left_behind_s(one, file) if file is not None else None
        if file is not None and age_s is not None and certainty is not None and not one.is_stopped:
            at.setdefault((one.node.name, file.path), []).append(_Waiter(one, certainty, age_s))
    for (node, path), waiters in at.items():
        ones = [w.one for w in waiters]
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            reduce(weaker, (w.certainty for w in waiters)),
            f"{waits(len(ones))} until the lock file {path} goes away, and nobody is left who would remove it",
            who=[one.who() for one in ones],
            evidence=[
                *(stack_evidence(one) for one in ones[:4]),
                proc_evidence(ones[0], f"{path}: written {_ago(waiters[0].age_s)} before this look, and no process of {node} holds it open"),
            ],
            remedy=[
                f"end the run, then on {node}: rm {shlex.quote(path)} (without the end, who waits now would load what nobody has built)",
                "find who was killed while it built: an earlier run, or the out-of-memory killer (dmesg)",
                "build extensions before the run, or give each run a folder of its own (TORCH_EXTENSIONS_DIR)",
            ],
            phase=ones[0].phase,
        )
        yield Found(finding=finding, explains=frozenset(one.key for one in ones))


def _ago(seconds: float) -> str:
    """In the unit that a person would use: ``40 s``, ``12 min``, ``3 h``, ``2 days``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"
