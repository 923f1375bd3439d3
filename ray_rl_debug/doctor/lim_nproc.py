"""RRD806 too few processes allowed

Story
    ulimit -u counts all threads of a user on the node. Ray's daemons and each worker have dozens; at the limit the raylet or the GCS aborts
    with "Resource temporarily unavailable".

Evidence
    RLIMIT_NPROC less the threads this user has now, and pids.max of the control group.

Remedy
    Raise the soft limit to the hard one; have the site not propagate the login node's limits.

Not this when
    The limit does not bind: root is exempt from it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok, unknown, warn
from ray_rl_debug.doctor.plans import intended_cpus
from ray_rl_debug.model.health import Health, NodeHealth, Result

ID = "RRD806"
NAME = "too few processes allowed"
CHECK = "lim.nproc"
# 40 threads per worker and 200 for Ray's daemons; with 64 in all the raylet aborted, with 40 the GCS did.
BASE, PER_CPU = 200, 40


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        intended = intended_cpus(node)
        needed = BASE + PER_CPU * (intended[0] if intended else node.cpus.allowed or 1)
        rooms = list(_rooms(node))
        if not rooms and node.limits.processes is None:
            yield unknown(node.name, "limits were not read")
            continue
        room, text, remedy = min(rooms, default=(None, "no limit of processes", ""), key=lambda r: r[0] or 0)
        if room is None or room >= 2 * needed:
            yield ok(node.name, text, f"room for {needed}")
        elif room < needed:
            yield fail(node.name, text, f"room for {needed}", "the raylet or the GCS aborts: Resource temporarily unavailable", remedy)
        else:
            yield warn(node.name, text, f"room for {2 * needed}", "with more workers or threads Ray's daemons abort", remedy)


def _rooms(node: NodeHealth) -> Iterator[tuple[int, str, str]]:
    limits = node.limits
    if limits.processes is not None and limits.processes.soft is not None:
        room = limits.processes.soft - (limits.user_threads or 0)
        hard = limits.processes.hard
        can_raise = hard is None or hard > limits.processes.soft
        remedy = 'ulimit -Su "$(ulimit -Hu)"' if can_raise else "ask the site for PropagateResourceLimitsExcept=NPROC in slurm.conf"
        yield room, f"room for {room} more (ulimit -u {limits.processes.soft}, {limits.user_threads} threads run)", remedy
    if limits.group_max is not None:
        room = limits.group_max - (limits.group_now or 0)
        yield room, f"room for {room} more (pids.max {limits.group_max}, {limits.group_now} run)", "raise the container's --pids-limit, or TasksMax"
