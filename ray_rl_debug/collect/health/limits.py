"""Limits of processes, files and memory that a process started here would have, or that one has."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from pathlib import Path

from ray_rl_debug.collect.cgroups import read_cgroup_memory
from ray_rl_debug.collect.health.cpu import ROOT, levels
from ray_rl_debug.collect.procfs import PROC, list_pids, read_stat, read_text
from ray_rl_debug.model.health import Limit, Limits, Memory


def read_limits(group: Mapping[str, str], proc: Path = PROC, root: Path = ROOT, pid: int | None = None) -> Limits:
    folders = levels(group, "pids", root)
    tightest = min(((n, f) for f in folders if (n := _number(f / "pids.max")) is not None), default=None, key=lambda pair: pair[0])
    return Limits(
        processes=_limit(resource.RLIMIT_NPROC, pid),
        user_threads=_threads_of(_owner(pid, proc), proc),
        group_max=tightest[0] if tightest else None,
        group_now=_number(tightest[1] / "pids.current") if tightest else None,
        files=_limit(resource.RLIMIT_NOFILE, pid),
        locked_memory=_limit(resource.RLIMIT_MEMLOCK, pid),
    )


def read_memory(proc: Path = PROC, shm: Path = Path("/dev/shm"), pid: int | None = None, root: Path = ROOT) -> Memory:
    rows = dict(line.split(":", 1) for line in (read_text(proc / "meminfo", 1 << 16) or "").splitlines() if ":" in line)
    total = int(rows["MemTotal"].split()[0]) << 10 if "MemTotal" in rows else None
    limit = read_cgroup_memory(pid or os.getpid(), proc).limit_bytes
    counted = _counted_by_ray(total, root)
    try:
        room = os.statvfs(shm)
    except OSError:
        return Memory(total_bytes=total, limit_bytes=limit, ray_bytes=counted)
    return Memory(
        total_bytes=total,
        limit_bytes=limit,
        ray_bytes=counted,
        shm_total_bytes=room.f_frsize * room.f_blocks,
        shm_free_bytes=room.f_frsize * room.f_bavail,
    )


def _counted_by_ray(total: int | None, root: Path) -> int | None:
    """As Ray's get_system_memory: the limit at the root of the mounted control groups, which is a container's own, else the machine's memory."""
    found = (_number(root / name) for name in ("memory/memory.limit_in_bytes", "memory.max"))
    limit = next((n for n in found if n is not None), None)
    return total if limit is None or total is None else min(limit, total)


def _limit(which: int, pid: int | None) -> Limit:
    soft, hard = (None if n == resource.RLIM_INFINITY else n for n in resource.prlimit(pid or 0, which))
    return Limit(soft=soft, hard=hard)


def _owner(pid: int | None, proc: Path) -> int:
    return (proc / str(pid)).stat().st_uid if pid else os.geteuid()


def _threads_of(uid: int, proc: Path) -> int:
    total = 0
    for pid in list_pids(proc):
        try:
            if (proc / str(pid)).stat().st_uid == uid:
                stat = read_stat(proc / str(pid))
                total += stat.threads if stat else 0
        except OSError:
            continue
    return total


def _number(path: Path) -> int | None:
    text = (read_text(path, 64) or "").strip()
    return int(text) if text.isdigit() else None
