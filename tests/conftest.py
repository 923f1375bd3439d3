"""Which tests plain ``pytest`` runs: those of ``quick.txt`` of the real ones, all but those of ``thorough.txt`` of the others. Else name markers."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest


def _named(list_: str) -> frozenset[str]:
    lines = (line.strip() for line in (Path(__file__).parent / list_).read_text().splitlines())
    return frozenset(line for line in lines if line and not line.startswith("#"))


MARKED = {name: _named(f"{name}.txt") for name in ("quick", "thorough")}

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run side by side; numpy's threads would wait for each other with all cores


def pytest_configure() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would all programs that tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what the two lists name: a file, a test, or one of its parameters."""
    for item in items:
        file, _, name = item.nodeid.removeprefix("tests/").partition("::")
        for mark, named in MARKED.items():
            if {file, f"{file}::{name.partition('[')[0]}", f"{file}::{name}"} & named:
                item.add_marker(mark)
