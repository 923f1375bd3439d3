"""Several clusters on one machine: what a reader needs to choose one."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

from ray_rl_debug.collect.procfs import PROC, read_stat, read_status, read_text


def describe_choices(raylets: Mapping[int, str | None], proc: Path = PROC) -> str:
    """The option to type for each cluster, with whose it is and how old, by its oldest raylet here; `raylets` are GCS addresses by pid."""
    return "; ".join(f"--address {a} ({_describe(a, raylets, proc)})" for a in sorted({a for a in raylets.values() if a}))


def _describe(address: str, raylets: Mapping[int, str | None], proc: Path) -> str:
    stats = [(stat.start_ticks, pid) for pid, a in raylets.items() if a == address and (stat := read_stat(proc / str(pid))) is not None]
    if not stats:
        return "gone meanwhile"
    started, pid = min(stats)
    uptime = (read_text(proc / "uptime", 64) or "").split()
    age = f", up {_age(float(uptime[0]) - started / os.sysconf('SC_CLK_TCK'))}" if uptime else ""
    return f"{len(stats)} raylet{'s' if len(stats) > 1 else ''} of {_user(read_status(pid, proc))}{age}"


def _user(status: Mapping[str, str]) -> str:
    uid = status.get("Uid", "?").split()[0]
    try:
        return pwd.getpwuid(int(uid)).pw_name
    except (KeyError, ValueError):
        return f"user {uid}"


def _age(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
