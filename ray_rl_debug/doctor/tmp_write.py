"""RRD812 Ray cannot use its temporary folder

Story
    /tmp/ray of another user, a read-only place, a network file system that takes no sockets, a full disk.

Evidence
    An attempt to make the folder and a Unix socket in it; its owner, file system and free space.

Remedy
    A folder of one's own on a local disk.

Not this when
    Another folder is given to ray start.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, gib, ok, unknown, warn
from ray_rl_debug.model.health import Health, Result

ID = "RRD812"
NAME = "Ray cannot use its temporary folder"
CHECK = "tmp.write"
NETWORK = frozenset({"nfs", "nfs4", "lustre", "gpfs", "beegfs", "cifs", "smb3", "ceph", "fuse.glusterfs", "fuse.sshfs", "afs"})
FAIL_BYTES, WARN_BYTES = 5 << 30, 20 << 30
_REMEDY = "ray start --head --temp-dir=/tmp/rr$SLURM_JOB_ID"


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        temp = node.temp
        if temp is None:
            yield unknown(node.name, "the temporary folder was not tried")
            continue
        free = temp.free_bytes
        if temp.error is not None:
            owner = f" (belongs to {temp.owner})" if temp.is_ours is False else ""
            yield fail(node.name, f"{temp.path}: {temp.error}{owner}", "writable", "ray start ends with PermissionError", _REMEDY)
        elif temp.filesystem in NETWORK:
            consequence = "sockets and locks of Ray fail on network file systems"
            yield fail(node.name, f"{temp.path} is on {temp.filesystem}", "a local disk", consequence, _REMEDY)
        elif free is not None and free < FAIL_BYTES:
            yield fail(
                node.name, f"{temp.path}: {gib(free)} free", gib(FAIL_BYTES), "Ray stops starting workers on a full disk", "df -h " + temp.path
            )
        elif free is not None and free < WARN_BYTES:
            yield warn(node.name, f"{temp.path}: {gib(free)} free", gib(WARN_BYTES), "object spilling fills the disk", "df -h " + temp.path)
        else:
            yield ok(
                node.name, f"{temp.path} on {temp.filesystem}{f', {gib(free)} free' if free is not None else ''}", f"writable, {gib(WARN_BYTES)}"
            )
