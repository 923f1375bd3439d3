"""Ranks of which a sentence says that they have not come: ``rank 1 waits in `broadcast`, but rank 0 is not calling it``, ``rank 3 never entered``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ray_rl_debug.formats.dump import Said
from ray_rl_debug.formats.pasted import said
from ray_rl_debug.formats.pasted.partial import Partial

_ABSENT = re.compile(
    r"\b(?:global )?ranks? ?#?" + said.NUMBERS + r" (?:(?:is|are|has|have|had|was|were|do|does|did) ?)?(?:never|not|n't|n’t)(?: yet| even)? "
    r"(?:call|enter|join|reach|arriv|post|issu|launch|submit|show)(?:e?s|e?d|ing)?\b",
    re.IGNORECASE,
)
_OTHERWISE = re.compile(r"\b(?:if|would|could|should|might|may|unless|when|until|because)\b", re.IGNORECASE)
"""What would be so, or when it was."""
_NEAR = 120
"""Characters before it in which such a word may stand."""


def add(number: int, text: str, dumps: Sequence[Partial]) -> None:
    """The remark, to the processes that the same paragraph shows waiting; one that it shows is not absent."""
    found = _ABSENT.search(text) if dumps else None
    if found is None or _OTHERWISE.search(re.split(r"[.;] |, (?:but|and|while) ", text[max(0, found.start() - _NEAR) : found.start()])[-1]):
        return
    ranks = said.numbers(found["ranks"])
    shown = {rank for dump in dumps for rank in dump.ranks}
    if shown and not shown & set(ranks):
        told = Said(kind="missing", text=text[max(0, found.start() - _NEAR) : found.end() + _NEAR].strip(), ranks=ranks)
        for dump in dumps:
            dump.said.append((number, told))
