"""What a container of a Kubernetes pod allows the processes in it."""

from __future__ import annotations

from ray_rl_debug.model.snapshot import Fact


class Pod(Fact, frozen=True, kw_only=True):
    """As one process in a pod's container sees it; ``None`` means *not measured*."""

    user_id: int | None = None
    """Effective user id."""
    has_ptrace: bool | None = None
    """Is SYS_PTRACE among the capabilities that the process has now? Those that a container adds reach root alone."""
    may_have_ptrace: bool | None = None
    """Is it among those that root, or a program with file capabilities, may have in this container?"""
    no_new_privileges: bool | None = None
    """``allowPrivilegeEscalation: false``: sudo and file capabilities have no effect."""
    has_seccomp: bool | None = None
    """Does a filter of system calls apply?"""
    ptrace_scope: int | None = None
    """Of the node's kernel; 0 also where the kernel has no Yama."""
    shares_processes: bool | None = None
    """Do all containers of the pod see each other's processes (``shareProcessNamespace``)?"""
