"""Rows of Markdown tables: ``| rank 3 | `f (a.py:1)` |``."""

from __future__ import annotations


def cells(row: str) -> list[str]:
    """What stands between the bars, without the signs of code and bold letters around it."""
    return [cell.strip(" `*") for cell in row.strip().strip("|").split("|")]
