"""After a job has ended well: did it train at all?"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ray_rl_debug.analyze.phase import phase_of_name
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Report, State
from ray_rl_debug.model.snapshot import RayJob, RayState, Snapshot, TaskHistory
from ray_rl_debug.privacy.redact import made_safe
from ray_rl_debug.ray_state.channel import open_channel
from ray_rl_debug.ray_state.tasks import read_tasks
from ray_rl_debug.watch.learn import Learned

TRAINS = frozenset({"rollout", "reward", "logprob", "values", "advantage", "update"})
DEADLINE_S = 5.0


def finished_calls(address: str, job: RayJob) -> tuple[TaskHistory, ...]:
    """What Ray's table keeps of an ended job. Raises what gRPC raises."""
    channel = open_channel(address)
    try:
        return read_tasks(channel, job.job_id, DEADLINE_S)[1]
    finally:
        channel.close()


def has_trained(learned: Learned, calls: Iterable[str] = ()) -> bool:
    """Was a step logged, or a call seen that belongs to one?"""
    names = (*learned.calls, *learned.told, *calls)
    return bool(learned.step) or any(phase_of_name(name) in TRAINS for name in names)


def check_end(job: RayJob, history: tuple[TaskHistory, ...], *, address: str, now_s: float) -> tuple[Snapshot, Report] | None:
    """The facts and the report of a job that ended without a training step; None where nothing is wrong or cannot be told."""
    ended = msgspec.structs.replace(job, alive=False)  # as it was known last, it was not
    snapshot = made_safe(Snapshot(taken_time_s=now_s, nodes=(), ray=RayState(address=address, jobs=(ended,), history=history)))
    report = diagnose(snapshot)
    is_wrong = report.verdict.state is State.FINISHED and any(f.root for f in report.findings)
    return (snapshot, report) if is_wrong else None
