"""What the pod's container allows, where we run in one: capabilities, seccomp, namespaces; from /proc alone."""

from __future__ import annotations

from pathlib import Path

from ray_rl_debug.collect.permissions import CAP_SYS_PTRACE, find_place
from ray_rl_debug.collect.procfs import PROC, read_stat, read_text
from ray_rl_debug.model.pod import Pod

PAUSE = "pause"
"""The program that is process 1 where the containers of a pod share their processes (Kubernetes' build/pause)."""


def read_pod(proc: Path = PROC, place: str | None = None) -> Pod | None:
    """Of this process; None outside of Kubernetes."""
    if (find_place(proc) if place is None else place) != "kubernetes":
        return None
    text = read_text(proc / "self" / "status", 1 << 16) or ""
    rows = {name: value.split() for name, _, value in (line.partition(":") for line in text.splitlines())}
    first = read_stat(proc / "1")
    seccomp = _whole(rows.get("Seccomp"))
    flag = _whole(rows.get("NoNewPrivs"))
    users = rows.get("Uid", [])
    scope = proc / "sys" / "kernel" / "yama" / "ptrace_scope"
    return Pod(
        user_id=int(users[1]) if len(users) > 1 and users[1].isdigit() else None,
        has_ptrace=_has(rows.get("CapEff")),
        may_have_ptrace=_has(rows.get("CapBnd")),
        no_new_privileges=None if flag is None else bool(flag),
        has_seccomp=None if seccomp is None else seccomp > 0,
        ptrace_scope=_whole((read_text(scope, 16) or "").split()) if scope.exists() else 0,
        shares_processes=None if first is None else first.comm == PAUSE,
    )


def _has(words: list[str] | None) -> bool | None:
    try:
        return bool(int(words[0], 16) & CAP_SYS_PTRACE) if words else None
    except ValueError:
        return None


def _whole(words: list[str] | None) -> int | None:
    return int(words[0]) if words and words[0].isdigit() else None
