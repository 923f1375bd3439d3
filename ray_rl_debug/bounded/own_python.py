"""Commands that run a program of ours in another process, with the import path of this one.

Python itself would put the current folder first for ``-c`` and ``-m``. What lies there may be anybody's: a ``json.py`` in a shared scratch folder
would run as us.
"""

from __future__ import annotations

import sys

PLAIN_PATH = "import sys; sys.path[:] = [p for p in sys.path if p]\n"
"""The first line of a program that is to have the path of its own environment, without the current folder."""


def own_program(program: str) -> list[str]:
    """The command that runs `program`, the text of a few lines."""
    return [sys.executable, "-c", f"import sys; sys.path[:] = {[p for p in sys.path if p]!r}\n{program}"]


def own_module(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of ours, as ``python -m MODULE ARGUMENTS`` does."""
    return [*own_program(f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"), *arguments]
