"""The lists of tests that plain ``pytest`` runs or leaves out name tests that exist, each once."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def rows(name: str) -> list[str]:
    return [row for row in (TESTS / f"{name}.txt").read_text().splitlines() if row and not row.startswith("#")]


@pytest.mark.parametrize("name", ["quick", "thorough"])
def test_each_row_names_a_test_that_exists(name: str) -> None:
    assert len(set(rows(name))) == len(rows(name)) > 10
    for row in rows(name):
        file, _, test = row.partition("::")
        text = (TESTS / file).read_text(encoding="utf-8")
        assert not test or f"def {test.partition('[')[0]}(" in text, row


def test_no_test_is_in_both_lists() -> None:
    assert not set(rows("quick")) & set(rows("thorough"))
