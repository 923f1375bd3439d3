"""Which ways into other processes are open on this node, and the one command or setting that opens the next.

Nothing is attached to find out: opening /proc/PID/mem passes the same access check as ptrace does (ptrace(2), PTRACE_MODE_ATTACH).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.model.snapshot import Doors

CAP_SYS_PTRACE = 1 << 19


def find_doors(pids: Sequence[int], proc: Path = PROC) -> Doors:
    """The doors of this node, tried on a few of `pids`: one that opens anywhere counts as open."""
    tried = [p for p in pids if p != os.getpid()][:5]
    memory = _opens_anywhere([proc / str(p) / "mem" for p in tried])
    environ = _opens_anywhere([proc / str(p) / "environ" for p in tried])
    public = any(read_text(proc / str(p) / "stat", 512) for p in tried) if tried else None
    return Doors(
        attach=memory,
        memory=memory,
        environ=environ,
        public=public,
        setting=_closing_setting(tried, proc) if memory is False else None,
        place=find_place(proc),
    )


def remedy(doors: Doors) -> str | None:
    """The one thing to do that opens the next door here; None when all are open."""
    if doors.memory is not False:
        return None
    setting = doors.setting or ""
    if "other user" in setting:
        return "run rayrl-debug as the user who runs the job, or with sudo"
    if "namespace" in setting:
        return "run rayrl-debug outside this user namespace (not under unshare -U or in a rootless container)"
    if doors.place == "kubernetes":
        # a capability that a container adds reaches root alone
        user = "" if os.geteuid() == 0 else "runAsUser: 0, "
        return f"add to the pod's container: securityContext: {{{user}capabilities: {{add: [SYS_PTRACE]}}}}"
    if doors.place == "docker":
        return "start the container with: docker run --cap-add SYS_PTRACE ..."
    if doors.place == "apptainer":
        return "start with: apptainer exec --add-caps CAP_SYS_PTRACE ..., or set kernel.yama.ptrace_scope=0 on the host"
    if "ptrace_scope" in setting:
        return "sudo sysctl kernel.yama.ptrace_scope=0, or prepare the job: worker_process_setup_hook=ray_rl_debug.prepare.open_doors"
    return "run rayrl-debug with sudo, or give it CAP_SYS_PTRACE"


def find_place(proc: Path = PROC) -> str:
    """Where we run: ``kubernetes``, ``docker``, ``apptainer``, ``slurm`` or ``bare``."""
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    if "APPTAINER_CONTAINER" in os.environ or "SINGULARITY_CONTAINER" in os.environ:
        return "apptainer"
    groups = read_text(proc / "1" / "cgroup", 1 << 16) or ""
    if "kubepods" in groups:
        return "kubernetes"
    if Path("/.dockerenv").exists() or "docker" in groups or "containerd" in groups:
        return "docker"
    return "slurm" if "SLURM_JOB_ID" in os.environ else "bare"


def _opens_anywhere(paths: Sequence[Path]) -> bool | None:
    """None where nobody could tell."""
    told = [opened for path in paths if (opened := _opens(path)) is not None]
    return any(told) if told else None


def _opens(path: Path) -> bool | None:
    """None of a process that has ended: that nothing opens there is no setting."""
    try:
        with path.open("rb"):
            return True
    except OSError as e:
        return None if e.errno in (errno.ESRCH, errno.ENOENT) else False


def _closing_setting(tried: Sequence[int], proc: Path) -> str:
    scope = (read_text(proc / "sys" / "kernel" / "yama" / "ptrace_scope", 16) or "").strip()
    status = read_text(proc / "self" / "status", 1 << 16) or ""
    effective = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)
    mapping = (read_text(proc / "self" / "uid_map", 4096) or "").split()
    in_namespace = len(mapping) >= 3 and mapping[2] != "4294967295"
    if in_namespace:
        return "we run in a user namespace of our own"
    owners = {_owner(p, proc) for p in tried}
    if not effective & CAP_SYS_PTRACE and owners and os.geteuid() not in owners:
        return "the processes belong to another user"
    if scope not in ("", "0") and not effective & CAP_SYS_PTRACE:
        return f"ptrace_scope={scope}"
    return "no CAP_SYS_PTRACE" if not effective & CAP_SYS_PTRACE else "a security module or seccomp filter"


def _owner(pid: int, proc: Path) -> int | None:
    try:
        return (proc / str(pid)).stat().st_uid
    except OSError:
        return None
