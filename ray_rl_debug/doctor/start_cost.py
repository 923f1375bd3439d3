"""RRD805 workers would not register in time

Story
    A raylet gives its workers 60 seconds to import Ray and register. Many workers on few cores, or an environment on a slow shared file system,
    need longer; the driver then waits in ray.init() for ever.

Evidence
    Time and CPU time of importing Ray here, cold and warm; workers that start together; allowed cores; the time-out.

Remedy
    Fewer CPUs for Ray, an environment on a local disk, a longer time-out.

Not this when
    The import was slow only once, because the page cache was cold.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok, unknown, warn
from ray_rl_debug.doctor.plans import intended_cpus, start_s, workers_at_once
from ray_rl_debug.model.health import Health, NodeHealth, Result

ID = "RRD805"
NAME = "workers would not register in time"
CHECK = "start.cost"
FAIL_SHARE, WARN_SHARE = 0.8, 0.4
COLD_S = 20.0


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        if not node.plan.is_preflight:
            continue
        if node.start is None:
            yield unknown(node.name, "importing Ray was not tried")
        elif node.start.error is not None:
            yield _broken(node, node.start.error)
        else:
            yield from _timed(node)


def _broken(node: NodeHealth, error: str) -> Result:
    remedy = f"{node.versions.get('executable', 'python')} -X importtime -c 'import ray'"
    return fail(node.name, f"import ray: {error}", "it can be imported", "no worker can start", remedy)


def _timed(node: NodeHealth) -> Iterator[Result]:
    intended, limit_s = intended_cpus(node), node.plan.register_timeout_s
    needed_s = start_s(node, intended[0]) if intended is not None else None
    assert node.start is not None
    if intended is None or needed_s is None:
        yield unknown(node.name, "how many CPUs Ray would take is not known")
    else:
        workers = workers_at_once(node, intended[0])
        measured = f"{workers} workers, {node.start.cpu_s:.2f} CPU seconds each, on {node.cpus.allowed} cores: about {needed_s:.0f} s"
        threshold = f"{limit_s:g} s (RAY_worker_register_timeout_seconds)"
        if needed_s > FAIL_SHARE * limit_s:
            remedy = f"ray start --num-cpus={node.cpus.allowed}, or export RAY_worker_register_timeout_seconds={_round_up(4 * needed_s)}"
            yield fail(node.name, measured, threshold, "workers do not register within the timeout; ray.init() hangs without a word", remedy)
        elif needed_s > WARN_SHARE * limit_s:
            remedy = f"export RAY_worker_register_timeout_seconds={_round_up(5 * needed_s)} before ray start"
            yield warn(node.name, measured, threshold, "on a busy day ray.init() hangs", remedy)
        else:
            yield ok(node.name, measured, threshold)
    if node.start.cold_s is not None and node.start.cold_s > COLD_S:
        measured = f"the first import of Ray took {node.start.cold_s:.0f} s"
        remedy = "keep the environment on a local disk (copy it in --setup), or in a container image"
        yield warn(node.name, measured, f"{COLD_S:g} s", "a slow shared file system makes every worker late", remedy)


def _round_up(seconds: float) -> int:
    return max(60, -(-int(seconds) // 60) * 60)
