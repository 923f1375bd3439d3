"""What is true of a case, and whether a report says so."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Any

QUIET = ("healthy", "slow")
UNSURE = ("possible",)


@dataclasses.dataclass(frozen=True)
class Truth:
    """States that are right, causes that are right, and a pattern for the label of the one that is to be named where its number does not tell."""

    states: Collection[str]
    causes: Collection[str] = ()
    who: str = ""

    def is_told(self, report: dict[str, Any], pids: Collection[int]) -> bool:
        """Right means: the state; for the sick also the first finding's cause and who; for the healthy that nobody is accused."""
        verdict, findings = report.get("verdict") or {}, report.get("findings") or []
        if verdict.get("state") not in self.states:
            return False
        if not self.causes:
            return all(f["certainty"] in UNSURE for f in findings)
        if not findings or findings[0]["cause"] not in self.causes or findings[0]["certainty"] in UNSURE:
            return False
        return any(self._is_meant(who, pids) for who in findings[0]["who"])

    def _is_meant(self, who: dict[str, Any], pids: Collection[int]) -> bool:
        if who.get("pid") in pids:
            return True
        return bool(self.who and re.search(self.who, f"{who.get('label')} {who.get('actor') or ''}", re.IGNORECASE))


HEALTHY = Truth(QUIET)
STARTING = Truth((*QUIET, "unknown"))
"""Of a job whose processes come one by one not much can be said."""
Trouble = Callable[[Any], AbstractContextManager[Collection[int]]]
"""Given the running program: a context in which the trouble is there. It gives the processes that are to be named, none when labels decide."""


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    program: str
    """Which program it needs: cases of one program share it."""
    trouble: Trouble
    truth: Truth
    is_fatal: bool = False
    """The program cannot be used afterwards."""
    wait_s: float = 3.0
    """Between the trouble and the look."""

    @property
    def is_healthy(self) -> bool:
        return not self.truth.causes
