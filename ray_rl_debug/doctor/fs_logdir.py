"""RRD829 the log folder is not shared, or not writable

Story
    A job that cannot write its logs leaves nothing to read; a log folder that every node has for itself leaves the logs on nodes that are gone.

Evidence
    A file written from each node, and whether all nodes see the same marker in it.

Remedy
    A folder on the shared file system.

Not this when
    Only one node is used.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok
from ray_rl_debug.model.health import Health, Result

ID = "RRD829"
NAME = "the log folder is not shared, or not writable"
CHECK = "fs.logdir"
_REMEDY = "rayrl-debug slurm render --output-dir FOLDER-THAT-ALL-NODES-SEE"


def examine(health: Health) -> Iterator[Result]:
    found = [(n.name, n.logs) for n in health.nodes if n.logs is not None]
    for name, logs in found:
        if logs.error is not None:
            yield fail(name, f"{logs.path}: {logs.error}", "writable", "nothing is left to read when the job dies", _REMEDY)
    marks = {logs.mark for _, logs in found if logs.mark is not None}
    if len(marks) > 1:
        text = ", ".join(name for name, _ in found[:6])
        yield fail(None, f"{found[0][1].path} is another folder on each of {text}", "one shared folder", "logs stay on nodes that are gone", _REMEDY)
    elif found and all(logs.error is None for _, logs in found):
        yield ok(None, f"{found[0][1].path} is writable{' and shared' if len(found) > 1 else ''}")
