"""The page of faults, made from the tests themselves: ``python tests/faults/page.py > docs/faults.md``.

The first line of a test's docstring says the fault, the rest what must still come out.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
HEAD = """\
# Faults that we survive

Each line is a test that brings the fault about for real and looks at what comes out. All of them: `pytest tests/faults -m 'not slow'`.
This page is made from the tests: `python tests/faults/page.py > docs/faults.md`.
"""


def lines(folder: Path = FOLDER) -> Iterator[str]:
    """The lines of the page.

    Raises:
        ValueError: a test does not say its fault and what must still come out.
    """
    yield from HEAD.splitlines()
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        tests = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name.startswith("test_")]
        if not tests:
            continue
        title = (ast.get_docstring(tree) or "").partition("\n")[0].rstrip(".")
        name = path.relative_to(folder).as_posix()
        if not title:
            raise ValueError(f"{name} has no docstring that says which faults it is about")
        yield from ("", f"## {title}", "", f"[`{name}`](../tests/faults/{name})", "", "| fault | what must still come out |", "| --- | --- |")
        for test in tests:
            fault, _, outcome = (ast.get_docstring(test) or "").partition("\n")
            outcome = " ".join(outcome.split())
            if not fault or not outcome:
                raise ValueError(f"{name}: {test.name} needs a docstring: the fault in its first line, what must still come out in the next")
            yield f"| {_cell(fault)} | {_cell(outcome)} |"


def _cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")


if __name__ == "__main__":
    try:
        sys.stdout.write("\n".join(lines()) + "\n")
    except ValueError as e:
        sys.exit(f"error: {e}")
