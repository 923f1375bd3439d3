"""The symptoms of a hang in one line: which of them hold, and how that was measured."""

from __future__ import annotations

from collections.abc import Iterable

from ray_rl_debug.model.report import Symptom

_HOLDS = {True: "yes", False: "no", None: "not known"}


def tell_symptoms(symptoms: Iterable[Symptom]) -> str:
    """``1 no progress: yes (0 of 4 processes moved in 2.3 s, ...); 2 ...``."""
    return "; ".join(f"{s.number} {s.name}: {_HOLDS[s.holds]} ({s.measured})" for s in symptoms)
