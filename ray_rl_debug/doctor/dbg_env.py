"""RRD827 workers would leave no evidence of a hang

Story
    Workers inherit the raylet's environment, not the driver's. Variables that make torch and NCCL keep a record must be set before ray start;
    exported later, they reach no worker.

Evidence
    The raylet's environment as it was started; before start, our own.

Remedy
    Export them before ray start, as the rendered job scripts do.

Not this when
    The framework passes them in its runtime environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ray_rl_debug.doctor.answers import ok, unknown, warn
from ray_rl_debug.doctor.plans import own_raylets
from ray_rl_debug.model.health import Health, NodeHealth, Result

ID = "RRD827"
NAME = "workers would leave no evidence of a hang"
CHECK = "dbg.env"
WANTED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"), "TORCH_FR_BUFFER_SIZE=2000"),
    (("TORCH_NCCL_DUMP_ON_TIMEOUT",), "TORCH_NCCL_DUMP_ON_TIMEOUT=1"),
    (("NCCL_DEBUG",), "NCCL_DEBUG=WARN"),
    (("PYTHONFAULTHANDLER",), "PYTHONFAULTHANDLER=1"),
)


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        for place, env in _environments(node):
            if env is None:
                yield unknown(node.name, f"the environment of {place} is not readable")
                continue
            missing = [setting for names, setting in WANTED if not any(env.get(n) not in (None, "", "0") for n in names)]
            if missing:
                consequence = "after a time-out of a collective there is no record of who was late"
                yield warn(node.name, f"{place} lacks {', '.join(missing)}", "set", consequence, f"export {' '.join(missing)} before ray start")
            else:
                kept = {n: env[n] for names, _ in WANTED for n in names if n in env}
                yield ok(node.name, f"{place}: " + " ".join(f"{k}={v}" for k, v in kept.items()))


def _environments(node: NodeHealth) -> list[tuple[str, Mapping[str, str] | None]]:
    raylets = own_raylets(node)
    if not raylets:
        return [("this environment", node.env)]
    return [(f"raylet {p.pid}", p.env) for p in raylets]
