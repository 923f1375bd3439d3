"""Lines with a remark on what stands above, and the heading of what follows: ``same on rank 1 and 2. rank 3:``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from ray_rl_debug.formats.pasted import labels, said
from ray_rl_debug.formats.pasted.lines import Line

_MOST_CHARS = 400
_ABOVE = re.compile(
    r"\W{0,4}(?:(?:that|this|it|the above|above|the one above|the stack above) (?:is|was|comes from|came from)) (?:from |of |on |the )*(?:global )?"
    r"(?:rank|pid|worker|TP|DP|PP) ?#?\d{1,9}[.;,]?(?=\s|$)",
    re.IGNORECASE,
)
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


def points_above(text: str) -> bool:
    """``That is rank 6.``: whose the stack above is."""
    return _ABOVE.match(text) is not None


def _end_of_remark(text: str) -> tuple[int, int] | None:
    if len(text) <= _MOST_CHARS and (above := _ABOVE.match(text)) is not None and above.end() < len(text):
        return above.end(), above.end()
    if len(text) > _MOST_CHARS or not text.rstrip("`*_ ").endswith(":"):
        return None
    for found in _END.finditer(text):
        told, head = said.remark(text[: found.start() + 1]), labels.read(text[found.end() :])
        if told is not None and told.kind == "same" and head is not None and not set(told.ranks) & set(head.ranks):
            return found.start() + 1, found.end()
    return None
