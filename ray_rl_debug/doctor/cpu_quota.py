"""RRD804 a CPU quota below Ray's CPUs

Story
    A control group may allow many cores but only a share of their time. Ray sees the cores.

Evidence
    cpu.max or cpu.cfs_quota_us along the control group's path.

Remedy
    Give Ray as many CPUs as the quota allows.

Not this when
    No quota is set.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import ok, unknown, warn
from ray_rl_debug.doctor.plans import intended_cpus
from ray_rl_debug.model.health import Health, Result

ID = "RRD804"
NAME = "a CPU quota below Ray's CPUs"
CHECK = "cpu.quota"


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        intended, quota = intended_cpus(node), node.cpus.quota
        if node.cpus.machine is None:
            yield unknown(node.name, "control groups were not read")
        elif quota is None:
            yield ok(node.name, "no CPU quota")
        elif intended is not None and quota < intended[0]:
            yield warn(
                node.name,
                f"quota of {quota:g} cores, Ray takes {intended[0]} ({intended[1]})",
                f"at least {intended[0]}",
                "workers are throttled together, and slow to start",
                f"ray start --num-cpus={max(1, int(quota))}",
            )
        else:
            yield ok(node.name, f"quota of {quota:g} cores")
