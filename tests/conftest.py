"""Which real tests plain ``pytest`` runs: a few of each kind, named in ``quick.txt``. For all others name their markers."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

QUICK = frozenset(
    line.strip() for line in (Path(__file__).parent / "quick.txt").read_text().splitlines() if line.strip() and not line.startswith("#")
)

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run side by side; numpy's threads would wait for each other with all cores


def pytest_configure() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would all programs that tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what ``quick.txt`` names: a file, a test, or one of its parameters."""
    for item in items:
        file, _, name = item.nodeid.removeprefix("tests/").partition("::")
        if {file, f"{file}::{name.partition('[')[0]}", f"{file}::{name}"} & QUICK:
            item.add_marker("quick")
