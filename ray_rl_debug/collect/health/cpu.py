"""CPUs that this process may use, as the kernel and Slurm say."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.model.health import Cpus

ROOT = Path("/sys/fs/cgroup")
_JOB = re.compile(r"^(.*?/job_\d+)(?:/|$)")


def read_cpus(env: Mapping[str, str], proc: Path = PROC, root: Path = ROOT, pid: int | None = None) -> Cpus:
    """Of a process, or of ourselves; `env` is its environment."""
    group = read_groups(proc, pid)
    cpuset = _folder(group, "cpuset", root)
    job = _JOB.match(str(cpuset)) if cpuset else None
    return Cpus(
        machine=os.cpu_count(),
        allowed=len(os.sched_getaffinity(pid or 0)),
        step=_count(cpuset),
        job=_count(Path(job[1])) if job else None,
        quota=_quota(group, root),
        slurm_per_task=_number(env.get("SLURM_CPUS_PER_TASK")),
        slurm_on_node=_number(env.get("SLURM_CPUS_ON_NODE")),
    )


def read_groups(proc: Path = PROC, pid: int | None = None) -> dict[str, str]:
    """Control group paths of a process, or of ourselves, by controller; version 2 has the empty name."""
    found: dict[str, str] = {}
    for line in (read_text(proc / str(pid or "self") / "cgroup", 1 << 16) or "").splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            for controller in parts[1].split(","):
                found.setdefault(controller, parts[2])
    return found


def levels(group: Mapping[str, str], controller: str, root: Path = ROOT) -> list[Path]:
    """The folder of a controller's group and its visible parents, innermost first."""
    folder = _folder(group, controller, root)
    if folder is None:
        return []
    base = root / controller if controller in group and (root / controller).is_dir() else root
    return [f for f in (folder, *folder.parents) if f.is_relative_to(base)]


def _folder(group: Mapping[str, str], controller: str, root: Path) -> Path | None:
    bases = [base for name, base in ((controller, root / controller), ("", root), ("", root / "unified")) if name in group]
    for name, base in ((controller, root / controller), ("", root), ("", root / "unified")):
        if name in group and ".." not in group[name]:
            folder = base / group[name].lstrip("/")
            if folder.is_dir():
                return folder
    # a container whose path is one of the host: what is mounted is its own group
    return next((base for base in bases if base.is_dir()), None)


def _count(folder: Path | None) -> int | None:
    if folder is None:
        return None
    for name in ("cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"):
        text = (read_text(folder / name, 1 << 16) or "").strip()
        if text:
            return count_list(text)
    return None


def count_list(text: str) -> int | None:
    """Members of a kernel list such as ``0-3,8``."""
    total = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            return None
        total += int(last or first) - int(first) + 1
    return total


def _quota(group: Mapping[str, str], root: Path) -> float | None:
    found = []
    for folder in levels(group, "cpu", root):
        quota, period = (read_text(folder / f"cpu.cfs_{name}_us", 64) for name in ("quota", "period"))
        if quota is None:
            quota, _, period = (read_text(folder / "cpu.max", 64) or "").partition(" ")
        if quota.strip().isdigit() and period and period.strip().isdigit() and int(period):
            found.append(int(quota) / int(period))
    return min(found, default=None)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
