"""Control groups of processes, version 1 and 2: where a process sits, its memory limit, how often the kernel killed for it, whether it is frozen."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from ray_rl_debug.collect.procfs import PROC, read_text

ROOT = Path("/sys/fs/cgroup")
UNLIMITED_BYTES = 1 << 60
"""Version 1 writes a number near 2**63 for no limit."""


class CgroupMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory accounting of one control group; None where the kernel does not tell."""

    oom_kills: int | None = None
    """Processes killed since the group was made."""
    limit_bytes: int | None = None
    """The tightest limit of the group and its visible parents; None for no limit."""
    used_bytes: int | None = None


def read_cgroup(pid: int, proc: Path = PROC) -> str | None:
    """The path that accounts the memory of a process: ``/kubepods/pod1/abc``. None when unreadable."""
    paths = _paths(pid, proc)
    return paths.get("memory") or paths.get("")


def read_cgroup_memory(pid: int, proc: Path = PROC, root: Path = ROOT) -> CgroupMemory:
    """Memory limit and out-of-memory kills of the control group of a process."""
    paths = _paths(pid, proc)
    if "memory" in paths:
        return _version_1(_levels(root / "memory", paths["memory"]))
    if "" in paths:
        return _version_2(_levels(_unified(root), paths[""]))
    return CgroupMemory()


def frozen_group(pid: int, proc: Path = PROC, root: Path = ROOT) -> str | None:
    """The outermost control group that somebody has frozen with this process in it; None where it runs, or its group is not mounted here."""
    paths = _paths(pid, proc)
    for base, controller, asked_in in ((root / "freezer", "freezer", "freezer.self_freezing"), (_unified(root), "", "cgroup.freeze")):
        levels = _levels(base, paths[controller]) if controller in paths else []
        if levels and _is_frozen(levels[0]):
            asked = [level for level in levels if _number(level / asked_in)] or levels[:1]
            return f"/{asked[-1].relative_to(root)}"
    return None


def _is_frozen(level: Path) -> bool:
    """Do all processes of a group stand still, whichever group above it was asked to freeze?"""
    return (read_text(level / "freezer.state", 64) or "").strip() == "FROZEN" or _row(level / "cgroup.events", "frozen") == 1


def _unified(root: Path) -> Path:
    return root / "unified" if (root / "unified").is_dir() else root


def _paths(pid: int, proc: Path) -> dict[str, str]:
    """Path by controller; version 2 has the empty name."""
    found: dict[str, str] = {}
    for line in (read_text(proc / str(pid) / "cgroup", 1 << 16) or "").splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            for controller in parts[1].split(","):
                found.setdefault(controller, parts[2])
    return found


def _levels(base: Path, path: str) -> list[Path]:
    """The folder of the group and of its parents, innermost first.

    In a container the path may be one of the host, of which only the end (or nothing) is mounted: what is not there is left out.
    """
    inner = base / path.lstrip("/")
    folders = [inner, *(p for p in inner.parents if p.is_relative_to(base))] if ".." not in path else [base]
    return [f for f in folders if f.is_dir()] or [base]


def _version_2(levels: list[Path]) -> CgroupMemory:
    # the root group of the machine has neither file; of the others the innermost that has it counts
    return CgroupMemory(
        oom_kills=_first(_row(level / "memory.events", "oom_kill") for level in levels),
        limit_bytes=min((n for n in (_number(level / "memory.max") for level in levels) if n is not None), default=None),
        used_bytes=_first(_number(level / "memory.current") for level in levels),
    )


def _version_1(levels: list[Path]) -> CgroupMemory:
    limits = (_number(level / "memory.limit_in_bytes") for level in levels)
    return CgroupMemory(
        oom_kills=_first(_row(level / "memory.oom_control", "oom_kill") for level in levels),
        limit_bytes=min((n for n in limits if n is not None and n < UNLIMITED_BYTES), default=None),
        used_bytes=_first(_number(level / "memory.usage_in_bytes") for level in levels),
    )


def _first(values: Iterable[int | None]) -> int | None:
    return next((v for v in values if v is not None), None)


def _number(path: Path) -> int | None:
    text = (read_text(path, 64) or "").strip()
    return int(text) if text.isdigit() else None


def _row(path: Path, key: str) -> int | None:
    rows = (line.split() for line in (read_text(path, 4096) or "").splitlines())
    return next((int(row[1]) for row in rows if len(row) == 2 and row[0] == key and row[1].isdigit()), None)
