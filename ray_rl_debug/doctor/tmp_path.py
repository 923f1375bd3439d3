"""RRD811 Ray's temporary folder has too long a name

Story
    Paths of Unix sockets may have 107 bytes; the session's name and the socket's take 63.

Evidence
    The length of the folder's name.

Remedy
    A short folder on a local disk.

Not this when
    The folder has at most 44 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok
from ray_rl_debug.model.health import Health, Result

ID = "RRD811"
NAME = "Ray's temporary folder has too long a name"
CHECK = "tmp.path"
MAX_BYTES = 44


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        if node.temp is None:
            continue
        length = len(node.temp.path.encode())
        text = f"{node.temp.path} has {length} bytes"
        if length > MAX_BYTES:
            remedy = "ray start --head --temp-dir=/tmp/rr$SLURM_JOB_ID"
            yield fail(node.name, text, f"{MAX_BYTES}", "ray start refuses: AF_UNIX path length cannot exceed 107 bytes", remedy)
        else:
            yield ok(node.name, text, f"{MAX_BYTES}")
