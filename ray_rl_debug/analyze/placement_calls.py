"""Functions that wait until Ray has placed a group, by their names: the answer that does not come is room in the cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.model.snapshot import Frame

_NAMES = re.compile(r"placement_groups?|(?:^|_)pgs?_ready|_until_pg")
"""verl's ``get_placement_groups``, vLLM's ``_wait_until_pg_ready``, and what people call their own."""
_OF_RAY = "ray/util/placement_group.py"


def placement_call(frames: Iterable[Frame]) -> str | None:
    """The bare name of the first such function; None where there is none."""
    return next((name for f in frames if _NAMES.search(name := short_name(f.function)) or f.file.endswith(_OF_RAY)), None)
