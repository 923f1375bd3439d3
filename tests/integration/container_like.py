"""A process in what a container runtime makes for a pod: own mounts, processes and control groups, a small /dev/shm, fewer rights.

Only the kernel's own means (`unshare`, control groups, `setpriv`), so no runtime and no image is needed. What is left out: Yama, which many kernels
lack, and the network.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 100_000


def can_contain() -> str | None:
    """None where it works, else why not."""
    if os.geteuid() != 0:
        return "needs root"
    if subprocess.run(["unshare", "-m", "-C", "-p", "-f", "--mount-proc", "true"], capture_output=True, check=False).returncode:
        return "no namespaces of our own here"
    try:
        with control_groups(1.0, 1 << 30):
            return None
    except OSError as e:
        return f"no control group of our own here: {e}"


@contextlib.contextmanager
def control_groups(cores: float, memory_bytes: int) -> Iterator[list[tuple[Path, Path]]]:
    """Groups with these limits: each folder, and where a container sees it."""
    name, quota = f"rayrl-debug-{uuid.uuid4().hex[:8]}", str(int(cores * PERIOD_US))
    if (ROOT / "cgroup.controllers").exists():
        group = ROOT / name
        limits = {group: {"memory.max": str(memory_bytes), "cpu.max": f"{quota} {PERIOD_US}"}}
        seen = [(group, ROOT)]
    else:
        limits = {
            ROOT / "memory" / name: {"memory.limit_in_bytes": str(memory_bytes)},
            ROOT / "cpu" / name: {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": quota},
        }
        seen = [(folder, folder.parent) for folder in limits]
    try:
        for folder, files in limits.items():
            folder.mkdir()
            for file, text in files.items():
                (folder / file).write_text(text)
        yield seen
    finally:
        for folder in limits:
            with contextlib.suppress(OSError):
                folder.rmdir()


def contained(script: str, *, cores: float, memory_bytes: int, shm: str, rights: str = "", env: dict[str, str], timeout_s: float = 150) -> str:
    """What a shell script prints in such a container. `rights` are options of setpriv. Nothing of it outlives the call."""
    with control_groups(cores, memory_bytes) as groups:
        enter = [f"echo $$ > {folder}/cgroup.procs" for folder, _ in groups]
        mounts = [f"mount --bind {folder} {at}" for folder, at in groups]
        inside = [*mounts, f"mount -t tmpfs -o size={shm} tmpfs /dev/shm", f"exec setpriv {rights} -- sh -c {shlex.quote(script)}"]
        # the group comes first: it is the root of the namespace made after it
        whole = [*enter, f"exec unshare -m -C -p -f --kill-child --mount-proc sh -ec {shlex.quote(' && '.join(inside))}"]
        argv = ["sh", "-ec", " && ".join(whole)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, check=False, env={**env, "PY": sys.executable})
        assert done.stdout, done.stderr[-2000:]
        return done.stdout
