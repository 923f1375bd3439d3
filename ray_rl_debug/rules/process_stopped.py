"""RRD501 process stopped

Story
    A process of the job was stopped by a signal, a debugger or a freezer. Its stack looks innocent; everybody else
    waits for it.

Evidence
    State T or t in /proc/PID/status, and the tracer's pid; or its control group, which is frozen at both looks.

Remedy
    kill -CONT, thaw the control group, or detach the tracer; find out who did it.

Not this when
    A dump, a profiler or the run itself holds the process for moments. So a stop has to last for a second if it was not there
    at the first look, or if the process got somewhere in it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.by_hand import source_of
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.report import Cause, Certainty
from ray_rl_debug.rules.scene import Found, Scene, make_finding, proc_evidence

ID = "RRD501"
NAME = "process stopped"
CAUSE = Cause.PROCESS_STOPPED


_TRACED = "t"
"""State of a process that a debugger or strace holds."""


def detect(scene: Scene) -> Iterator[Found]:
    """Stopped processes that somebody waits for, or that belong to the job."""
    for one in scene.view.like(lambda shape: shape.is_stopped):
        waited = bool(scene.graph.into([one.key]))
        traced = one.process.tracer_pid
        by = f" by tracer pid {traced}" if traced else " by the tool that traces it" if one.process.state == _TRACED else ""
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.PROVEN if waited else Certainty.LIKELY,
            f"{one.where()} is {one.stopped_how}{by}; its stack does not matter",
            who=[one.who()],
            evidence=[proc_evidence(one, _state(one, traced))],
            remedy=[_remedy(one, traced), "find who stopped it: a debugger, an operator, a cgroup freezer, job control"],
            phase=one.phase,
        )
        yield Found(finding=finding, explains=frozenset([one.key]))


def _state(one: Seen, traced: int | None) -> str:
    if source_of(one.process) is not None:
        return f"state {one.process.state}, as its line says{f'; TracerPid {traced}' if traced else ''}"
    if one.process.frozen_by is not None:
        return f"/sys/fs/cgroup{one.process.frozen_by} was frozen at the first and at the last look"
    return f"/proc/{one.process.pid}/status: State {one.process.state}, TracerPid {traced or 0}"


def _remedy(one: Seen, traced: int | None) -> str:
    if (group := one.process.frozen_by) is not None:
        word, file = ("THAWED", "freezer.state") if group.startswith("/freezer/") else ("0", "cgroup.freeze")
        thaw = f"echo {word} > /sys/fs/cgroup{group}/{file}"
        return f"on {one.identity.node}: {thaw}; of a container docker unpause, of a Slurm job scontrol resume"
    if traced:
        return f"detach the tracer: pid {traced}"
    if one.process.state == _TRACED:
        return f"on {one.identity.node}: grep TracerPid /proc/{one.process.pid}/status, and end that tool (strace, gdb, a profiler)"
    return f"on {one.identity.node}: kill -CONT {one.process.pid}"
