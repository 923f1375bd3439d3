"""May this cluster start, be joined, be inspected: one check per file, run over the facts of all nodes.

A check yields `Result`s; one that raises becomes a result too, and the others still run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType

import msgspec

from ray_rl_debug import __version__
from ray_rl_debug.doctor import (
    auth_same,
    clock_skew,
    cpu_allowed,
    cpu_quota,
    cpu_step,
    dbg_env,
    dbg_ptrace,
    fs_logdir,
    gpu_busy,
    gpu_count,
    gpu_driver,
    gpu_env,
    lim_memlock,
    lim_nofile,
    lim_nproc,
    log_scan,
    mem_limit,
    net_head,
    net_name,
    net_nccl,
    net_proxy,
    node_seen,
    port_block,
    ray_all,
    ray_other,
    shm_size,
    slurm_kill,
    slurm_mem,
    slurm_ver,
    start_cost,
    tmp_path,
    tmp_stale,
    tmp_write,
    train_env,
    ver_same,
)
from ray_rl_debug.model.health import Examination, Health, Result, Status

CHECKS: tuple[ModuleType, ...] = (
    node_seen,
    log_scan,
    cpu_allowed,
    cpu_step,
    cpu_quota,
    start_cost,
    lim_nproc,
    lim_nofile,
    lim_memlock,
    shm_size,
    mem_limit,
    tmp_path,
    tmp_write,
    tmp_stale,
    ray_all,
    ray_other,
    port_block,
    net_head,
    net_name,
    net_proxy,
    net_nccl,
    ver_same,
    auth_same,
    gpu_count,
    gpu_env,
    gpu_busy,
    gpu_driver,
    clock_skew,
    dbg_ptrace,
    dbg_env,
    train_env,
    fs_logdir,
    slurm_kill,
    slurm_mem,
    slurm_ver,
)
LOG_CHECKS: tuple[ModuleType, ...] = (log_scan,)
"""Those that need nothing but logs."""
_ORDER = {Status.FAIL: 0, Status.WARN: 1, Status.UNKNOWN: 2, Status.OK: 3}


def examine(health: Health, checks: Sequence[ModuleType] = CHECKS) -> Examination:
    """Run all checks; the worst results come first."""
    results = [result for check in checks for result in _run(check, health)]
    measured = [r.status for r in results if r.status is not Status.UNKNOWN]
    return Examination(
        tool_version=__version__,
        taken_time_s=max((n.taken_time_s for n in health.nodes), default=None),
        state=min(measured, default=Status.UNKNOWN, key=_ORDER.__getitem__),
        nodes=tuple(n.name for n in health.nodes),
        results=tuple(sorted(results, key=lambda r: _ORDER[r.status])),
        gaps=tuple(g for n in health.nodes for g in n.gaps),
    )


def _run(check: ModuleType, health: Health) -> Iterator[Result]:
    try:
        for result in check.examine(health):
            yield _complete(check, result)
    except Exception as e:  # noqa: BLE001 a check that fails says so, and costs no other
        yield _complete(check, Result(status=Status.UNKNOWN, measured=f"this check failed: {type(e).__name__}: {str(e)[:160]}"))


def _complete(check: ModuleType, result: Result) -> Result:
    return msgspec.structs.replace(result, id=check.ID, check=check.CHECK, name=check.NAME)
