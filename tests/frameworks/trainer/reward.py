"""A reward for the trainer: longer answers are odd or even."""

from __future__ import annotations

from typing import Any


def compute_score(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any) -> float:
    return float(len(solution_str) % 2)
