"""RRD828 settings that slow a run down or hide a hang

Story
    CUDA_LAUNCH_BLOCKING=1 and TORCH_DISTRIBUTED_DEBUG=DETAIL find one error and make everything slow, and change the timing that a hang depends on.
    Without NCCL's monitor a stuck watchdog never ends the job; with NCCL_TIMEOUT of days a hang costs days.

Evidence
    The variables of the raylet, or of this process before start.

Remedy
    For a search: NCCL_DEBUG=INFO, TORCH_DISTRIBUTED_DEBUG=DETAIL, a short time-out, and CUDA_LAUNCH_BLOCKING=1 only for a single error on few GPUs.
    For a real run: without them.

Not this when
    They were set on purpose, for one search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ray_rl_debug.doctor.answers import ok, warn
from ray_rl_debug.doctor.plans import own_raylets
from ray_rl_debug.model.health import Health, NodeHealth, Result

ID = "RRD828"
NAME = "settings that slow a run down or hide a hang"
CHECK = "train.env"
LONGEST_S = 4 * 3600


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        place, env = _environment(node)
        found = list(_settings(env))
        for setting, consequence, remedy in found:
            yield warn(node.name, f"{setting} ({place})", "not in a real run", consequence, remedy)
        if not found:
            levels = " ".join(f"{k}={env[k]}" for k in ("NCCL_DEBUG", "TORCH_DISTRIBUTED_DEBUG", "NCCL_TIMEOUT") if k in env)
            yield ok(node.name, f"{place}: {levels or 'nothing set'}; to search a hang: NCCL_DEBUG=INFO TORCH_DISTRIBUTED_DEBUG=DETAIL")


def _settings(env: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    if env.get("CUDA_LAUNCH_BLOCKING", "0") not in ("0", ""):
        yield (
            "CUDA_LAUNCH_BLOCKING=1",
            "every kernel is waited for: far slower, and NCCL calls of one thread may deadlock",
            "unset CUDA_LAUNCH_BLOCKING",
        )
    if env.get("TORCH_DISTRIBUTED_DEBUG", "").upper() == "DETAIL":
        yield "TORCH_DISTRIBUTED_DEBUG=DETAIL", "each collective is checked with two more: slow", "export TORCH_DISTRIBUTED_DEBUG=OFF"
    if env.get("NCCL_DEBUG", "").upper() in ("TRACE", "INFO") and "NCCL_DEBUG_FILE" not in env:
        yield f"NCCL_DEBUG={env['NCCL_DEBUG']}", "the lines of all ranks flood the driver's log", "export NCCL_DEBUG_FILE=/tmp/nccl.%h.%p.log"
    for name in ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"):
        if env.get(name) == "0":
            yield f"{name}=0", "a rank that lost its peers waits for ever instead of failing", f"unset {name}"
    if env.get("TORCH_NCCL_ENABLE_MONITORING") == "0":
        yield "TORCH_NCCL_ENABLE_MONITORING=0", "nothing ends a process whose watchdog is stuck", "unset TORCH_NCCL_ENABLE_MONITORING"
    for name in ("NCCL_TIMEOUT", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"):
        value = env.get(name, "")
        if value.isdigit() and int(value) > LONGEST_S:
            yield f"{name}={value}", f"a hang is noticed after {int(value) / 3600:.0f} h", f"export {name}=1800"


def _environment(node: NodeHealth) -> tuple[str, Mapping[str, str]]:
    raylet = next((p for p in own_raylets(node) if p.env), None)
    if raylet is None or raylet.env is None:
        return "this environment", node.env
    return f"raylet {raylet.pid}", raylet.env
