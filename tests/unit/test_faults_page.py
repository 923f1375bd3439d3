"""The page of faults says what the fault tests say."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.page import lines

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"


def test_the_page_is_what_the_tests_say() -> None:
    assert PAGE.read_text(encoding="utf-8").splitlines() == list(lines()), "write it again: python tests/faults/page.py > docs/faults.md"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def test_x():\n    pass\n", "no docstring that says which faults"),
        ('"""Faults."""\ndef test_x():\n    pass\n', "test_x needs a docstring"),
        ('"""Faults."""\ndef test_x():\n    """Only the fault."""\n', "test_x needs a docstring"),
    ],
)
def test_a_test_that_does_not_say_its_fault_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "test_a.py").write_text(text)
    with pytest.raises(ValueError, match=words):
        list(lines(tmp_path))


def test_a_row_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text('"""Faults of a kind."""\ndef test_x():\n    """A ``pipe`` a|b.\n\n    It still\n    comes.\n    """\n')
    assert list(lines(tmp_path))[-1] == "| A `pipe` a\\|b. | It still comes. |"
