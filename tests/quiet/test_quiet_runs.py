"""Healthy and slow runs: nobody is accused. All of them with ``-m slow`` or ``python tests/quiet/suite.py``; a handful always."""

from __future__ import annotations

import pytest
from quiet.suite import KINDS, LOOKS, looks

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]
pytest.importorskip("torch")
ALWAYS = ("async_rollouts", "loader_training")


def check(kind: str, count: int) -> None:
    for row in looks(kind, count):
        assert row.is_quiet, row


@pytest.mark.parametrize("kind", ALWAYS)
def test_a_handful(kind: str) -> None:
    check(kind, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_runs(kind: str) -> None:
    check(kind, len(LOOKS))
