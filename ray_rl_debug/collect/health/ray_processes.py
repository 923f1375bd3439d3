"""Raylets and GCS servers on this machine, of any user."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from ray_rl_debug.collect.health.folders import user_name
from ray_rl_debug.collect.procfs import PROC, list_pids, read_arguments, read_environment, read_stat, read_text
from ray_rl_debug.model.health import RayProcess
from ray_rl_debug.privacy.allowlist import allowed_environment

_ALSO = frozenset(
    "RAY_worker_register_timeout_seconds PYTHONFAULTHANDLER CUDA_LAUNCH_BLOCKING TORCH_CPP_LOG_LEVEL RAY_AUTH_MODE RAY_ADDRESS"
    " ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES SRUN_CPUS_PER_TASK SLURM_CPU_BIND SLURM_STEP_ID SLURM_MEM_PER_NODE SLURM_MEM_PER_CPU"
    " RAY_USE_MULTIPROCESSING_CPU_COUNT".split()
)
_PLAIN = re.compile(r"^[\w./:,@+=%-]{0,200}$")


def kept_environment(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The variables that the doctor may record."""
    listed = list(pairs)
    more = {k: v for k, v in listed if k in _ALSO and _PLAIN.match(v)}
    return dict(sorted({**allowed_environment(listed), **more}.items()))


def read_ray_processes(proc: Path = PROC) -> tuple[RayProcess, ...]:
    found = []
    for pid in list_pids(proc):
        stat = read_stat(proc / str(pid))
        if stat is None or stat.comm not in ("raylet", "gcs_server") or stat.state in ("Z", "X"):
            continue
        options = _options(read_arguments(pid, proc))
        environment = read_environment(pid, proc)
        resources = _resources(options.get("static_resource_list", ""))
        found.append(
            RayProcess(
                pid=pid,
                kind="raylet" if stat.comm == "raylet" else "gcs",
                user=user_name(_owner(pid, proc)),
                address=options.get("gcs_address") or _address_of_gcs(options),
                temp_dir=options.get("temp_dir"),
                slurm_job=_job(pid, proc, environment),
                cpus_claimed=resources.get("CPU") if stat.comm == "raylet" else None,
                gpus_claimed=resources.get("GPU", 0.0) if resources else None,
                cpus_allowed=_allowed(pid),
                is_of_our_group=_is_of_our_group(pid, proc),
                env=kept_environment(environment) if environment is not None else None,
            )
        )
    return tuple(found)


def sessions_in_use(proc: Path = PROC) -> tuple[str, ...]:
    """Session folders of the raylets and GCS servers that run here."""
    found: set[str] = set()
    for pid in list_pids(proc):
        stat = read_stat(proc / str(pid))
        if stat is not None and stat.comm in ("raylet", "gcs_server"):
            options = _options(read_arguments(pid, proc))
            found.update(v for k in ("session_dir", "log_dir") if (v := options.get(k, "").removesuffix("/logs")))
    return tuple(sorted(found))


def _options(arguments: Iterable[str]) -> dict[str, str]:
    pairs = (a[2:].partition("=") for a in arguments if a.startswith("--"))
    return {name.replace("-", "_"): value for name, _, value in pairs}


def _resources(text: str) -> dict[str, float]:
    words = text.split(",")
    found = {}
    for name, value in zip(words[::2], words[1::2], strict=False):
        try:
            found[name] = float(value)
        except ValueError:
            continue
    return found


def _address_of_gcs(options: dict[str, str]) -> str | None:
    port, ip = options.get("gcs_server_port"), options.get("node_ip_address")
    return f"{ip}:{port}" if port and ip and port != "0" else None


def _job(pid: int, proc: Path, environment: list[tuple[str, str]] | None) -> str | None:
    named = dict(environment or ()).get("SLURM_JOB_ID")
    if named and named.isdigit():
        return named
    group = re.search(r"/job_(\d+)", read_text(proc / str(pid) / "cgroup", 1 << 16) or "")
    return group[1] if group else None


def _allowed(pid: int) -> int | None:
    try:
        return len(os.sched_getaffinity(pid))
    except OSError:
        return None


def _is_of_our_group(pid: int, proc: Path) -> bool | None:
    theirs, ours = (read_text(proc / name / "cgroup", 1 << 16) for name in (str(pid), "self"))
    return theirs == ours if theirs and ours else None


def _owner(pid: int, proc: Path) -> int:
    try:
        return (proc / str(pid)).stat().st_uid
    except OSError:
        return -1
