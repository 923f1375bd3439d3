"""Folders that Ray and the job write to."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, gib, ok, unknown, warn
from ray_rl_debug.model.health import Health, NodeHealth, Result

MAX_PATH_BYTES = 44
NETWORK = frozenset({"nfs", "nfs4", "lustre", "gpfs", "beegfs", "cifs", "smb3", "ceph", "fuse.glusterfs", "fuse.sshfs", "afs"})
FAIL_BYTES, WARN_BYTES = 5 << 30, 20 << 30
MANY_SESSIONS = 20
_SHORT_LOCAL = "ray start --head --temp-dir=/tmp/rr$SLURM_JOB_ID"
_SHARED = "rayrl-debug slurm render --output-dir FOLDER-THAT-ALL-NODES-SEE"


def temp_path(node: NodeHealth) -> Iterator[Result]:
    """Paths of Unix sockets may have 107 bytes; the session's name and the socket's take 63.

    Evidence: The length of the folder's name.
    Remedy: Use a short folder on a local disk.
    Not this when: The folder has at most 44 bytes.
    """
    if node.temp is None:
        return
    length = len(node.temp.path.encode())
    text, consequence = f"{node.temp.path} has {length} bytes", "ray start refuses: AF_UNIX path length cannot exceed 107 bytes"
    yield fail(text, f"{MAX_PATH_BYTES}", consequence, _SHORT_LOCAL) if length > MAX_PATH_BYTES else ok(text, f"{MAX_PATH_BYTES}")


def temp_writable(node: NodeHealth) -> Iterator[Result]:
    """/tmp/ray belongs to another user, is read-only, is on a network file system that takes no sockets, or is on a full disk.

    Evidence: An attempt to make the folder and a Unix socket in it; its owner, file system and free space.
    Remedy: Use a folder of your own on a local disk.
    Not this when: Another folder is given to ray start.
    """
    temp = node.temp
    if temp is None:
        yield unknown("the temporary folder was not tested")
        return
    free = temp.free_bytes
    space, look = f"{temp.path}: {gib(free or 0)} free", f"df -h {shlex.quote(temp.path)}"
    if temp.error is not None:
        owner = f" (belongs to {temp.owner})" if temp.is_ours is False else ""
        yield fail(f"{temp.path}: {temp.error}{owner}", "writable", "ray start ends with PermissionError", _SHORT_LOCAL)
    elif temp.filesystem in NETWORK:
        consequence = "sockets and locks of Ray fail on network file systems"
        yield fail(f"{temp.path} is on {temp.filesystem}", "a local disk", consequence, _SHORT_LOCAL)
    elif free is not None and free < FAIL_BYTES:
        yield fail(space, gib(FAIL_BYTES), "Ray stops starting workers on a full disk", look)
    elif free is not None and free < WARN_BYTES:
        yield warn(space, gib(WARN_BYTES), "object spilling fills the disk", look)
    else:
        yield ok(f"{temp.path} on {temp.filesystem}{f', {gib(free)} free' if free is not None else ''}", f"writable, {gib(WARN_BYTES)}")


def stale_sessions(node: NodeHealth) -> Iterator[Result]:
    """Old sessions fill the disk, and session_latest may point to one of them: tools then look at the wrong cluster.

    Evidence: Session folders in which no raylet and no GCS runs.
    Remedy: Remove the sessions whose logs nobody needs.
    Not this when: Somebody still wants their logs.
    """
    if node.temp is None:
        return
    stale, free = node.temp.stale, node.temp.free_bytes
    text = f"{len(stale)} old sessions in {node.temp.path}"
    if len(stale) >= MANY_SESSIONS or (stale and free is not None and free < WARN_BYTES):
        remedy = f"rm -rf {shlex.quote(stale[0])} (and the others whose logs nobody needs)"
        yield warn(text, f"{MANY_SESSIONS}", "they fill the disk", remedy)
    else:
        yield ok(text, f"{MANY_SESSIONS}")


def log_folder(node: NodeHealth) -> Iterator[Result]:
    """A job that cannot write its logs leaves nothing to read. If every node has a log folder of its own, the logs stay on nodes that are gone.

    Evidence: A file written from each node, and whether all nodes see the same marker in it.
    Remedy: Use a folder on the shared file system.
    Not this when: Only one node is used.
    """
    if node.logs is not None and node.logs.error is not None:
        yield fail(f"{node.logs.path}: {node.logs.error}", "writable", "nothing is left to read when the job dies", _SHARED)


def log_folders(health: Health) -> Iterator[Result]:
    """Do all nodes see the same folder?"""
    found = [(n.name, n.logs) for n in health.nodes if n.logs is not None]
    if len({logs.mark for _, logs in found if logs.mark is not None}) > 1:
        text = f"{found[0][1].path} is another folder on each of {', '.join(name for name, _ in found[:6])}"
        yield fail(text, "one shared folder", "logs stay on nodes that are gone", _SHARED)
    elif found and all(logs.error is None for _, logs in found):
        yield ok(f"{found[0][1].path} is writable{' and shared' if len(found) > 1 else ''}")
