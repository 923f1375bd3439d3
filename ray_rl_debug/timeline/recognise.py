"""Which kind of trace or log a file is, by its first lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from ray_rl_debug.timeline.layout import Layout
from ray_rl_debug.timeline.model import Source
from ray_rl_debug.timeline.sources.ray_timeline import RayTimelineSource

_RAY = re.compile(r'"tid"\s*:\s*"(worker|driver):[0-9a-f]')


def recognise(path: Path, head: str) -> Callable[[Layout], Source] | None:
    """What makes the file's source, once it is known where processes stand; None for a file we do not know."""
    start = head.lstrip("\ufeff \t\r\n")
    if start.startswith("[") and _RAY.search(head):
        return lambda layout: RayTimelineSource(path.name, None, layout, path)
    return None
