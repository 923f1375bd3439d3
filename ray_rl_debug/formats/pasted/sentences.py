"""Lines with a remark on what stands above, and the heading of what follows: ``same on rank 1 and 2. rank 3:``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from ray_rl_debug.formats.pasted import labels, said
from ray_rl_debug.formats.pasted.lines import Line

_MOST_CHARS = 400
_END = re.compile(r"[.;,!)。] *(?<=[ 。])(?:(?:and|but|while|then|whereas) +)?(?=\S[^.;]{0,80}:[`*_ ]*$)", re.IGNORECASE)
"""Where the last part of a line begins that ends with a colon."""


def apart(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines, each such one as two with one number."""
    for line in lines:
        at = _end_of_remark(line.text)
        if at is None:
            yield line
        else:
            yield msgspec.structs.replace(line, text=line.text[: at[0]])
            yield msgspec.structs.replace(line, text=line.text[at[1] :])


def _end_of_remark(text: str) -> tuple[int, int] | None:
    if len(text) > _MOST_CHARS or not text.rstrip("`*_ ").endswith(":"):
        return None
    for found in _END.finditer(text):
        told, head = said.remark(text[: found.start() + 1]), labels.read(text[found.end() :])
        if told is not None and told.kind == "same" and head is not None and not set(told.ranks) & set(head.ranks):
            return found.start() + 1, found.end()
    return None
