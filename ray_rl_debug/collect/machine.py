"""Facts of the machine as a whole: its processors, memory, boot and address."""

from __future__ import annotations

import os
import platform
import socket
import sys
from pathlib import Path

from ray_rl_debug import __version__
from ray_rl_debug.collect.cgroups import CgroupMemory, read_cgroup_memory
from ray_rl_debug.collect.discover import Discovery
from ray_rl_debug.collect.procfs import machine_of, read_text


def read_machine(discovery: Discovery, proc: Path) -> dict[str, object]:
    """The fields of `Node` that the machine tells."""
    boot_id, pid_namespace = machine_of(proc)
    return {
        "boot_id": boot_id,
        "pid_namespace": pid_namespace,
        "cpu_count": os.cpu_count(),
        "cpus_allowed": _allowed_cpus(discovery),
        "load1": os.getloadavg()[0],
        "memory_total_bytes": _meminfo(proc, "MemTotal"),
        "memory_available_bytes": _meminfo(proc, "MemAvailable"),
    }


def read_job_memory(discovery: Discovery, proc: Path) -> CgroupMemory:
    """What the control group of the raylet, or of the first process found, says of its memory."""
    pid = discovery.raylet_pid or next((f.pid for f in discovery.found), None)
    return read_cgroup_memory(pid, proc) if pid is not None else CgroupMemory()


def own_ip() -> str | None:
    """The address this machine sends from. Nothing is sent: connecting a datagram socket only looks up the route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
            return str(s.getsockname()[0])
        except OSError:
            return None


def read_versions() -> dict[str, str]:
    """Of Python, the tool and the kernel; of Ray where it is loaded here."""
    ray = sys.modules.get("ray")
    of_ray = {"ray": str(ray.__version__)} if ray is not None and hasattr(ray, "__version__") else {}
    return {"python": platform.python_version(), "rayrl-debug": __version__, "kernel": platform.release(), **of_ray}


def _allowed_cpus(discovery: Discovery) -> int:
    """CPUs of the raylet, or of the first process found: we may sit in a smaller step of our own."""
    pid = discovery.raylet_pid or next((f.pid for f in discovery.found), 0)
    try:
        return len(os.sched_getaffinity(pid))
    except OSError:
        return len(os.sched_getaffinity(0))


def _meminfo(proc: Path, key: str) -> int | None:
    row = next((line for line in (read_text(proc / "meminfo", 1 << 16) or "").splitlines() if line.startswith(key + ":")), None)
    return int(row.split()[1]) * 1024 if row else None
