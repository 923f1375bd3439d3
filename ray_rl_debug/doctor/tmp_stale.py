"""RRD813 sessions of Ray that are over

Story
    Old sessions fill the disk, and session_latest may point at one of them: tools then look at the wrong cluster.

Evidence
    Session folders in which no raylet and no GCS runs.

Remedy
    Remove them.

Not this when
    Somebody still wants their logs.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ray_rl_debug.doctor.answers import ok, warn
from ray_rl_debug.model.health import Health, Result

ID = "RRD813"
NAME = "sessions of Ray that are over"
CHECK = "tmp.stale"
MANY = 20
FREE_BYTES = 20 << 30


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        if node.temp is None:
            continue
        stale, free = node.temp.stale, node.temp.free_bytes
        text = f"{len(stale)} old sessions in {node.temp.path}"
        if len(stale) >= MANY or (stale and free is not None and free < FREE_BYTES):
            yield warn(node.name, text, f"{MANY}", "they fill the disk", f"rm -rf {shlex.quote(stale[0])} (and the others whose logs nobody needs)")
        else:
            yield ok(node.name, text, f"{MANY}")
