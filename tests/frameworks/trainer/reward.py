"""A reward for the trainer: longer answers are odd or even. ``reward`` in the file that ``TROUBLE_FILE`` names makes it look for an end for ever."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any


def find_answer(text: str) -> str:
    with contextlib.suppress(OSError):
        while Path(os.environ.get("TROUBLE_FILE", "/nowhere")).read_text() == "reward":
            text = text.replace("a", "b")
    return text


def compute_score(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any) -> float:
    return float(len(find_answer(solution_str)) % 2)
