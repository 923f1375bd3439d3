"""The command against real engines: nobody healthy is accused, and the sick one is named.

``-m engines`` runs every case (hours), ``-m 'engines and not slow'`` the healthy ones and four sick ones (a quarter of an hour, and the minutes that
the environments take once). ``python -m engines.lab`` runs cases as often as wanted and keeps their snapshots.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from engines.lab import Bench, Options, ordered
from engines.truth import Case

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1800)]
HEALTHY = "vllm-tp1-idle vllm-tp1-busy vllm-tp2-idle vllm-tp2-busy verl-trains sglang-tp1-idle sglang-tp1-busy areal-runs pool-futures-fork".split()
SICK = "vllm-tp1-core-stopped vllm-tp1-worker-stuck vllm-tp1-paused-keep verl-core-killed-in-update".split()
LOOKS = 3
"""At a healthy program."""


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with contextlib.closing(Bench(Options())) as found:
        yield found


@pytest.mark.parametrize("case", [pytest.param(c, id=c.name, marks=() if c.name in (*HEALTHY, *SICK) else pytest.mark.slow) for c in ordered()])
def test_the_right_one_is_named_and_nobody_else(bench: Bench, case: Case) -> None:
    rows = list(bench.rows(case, LOOKS if case.is_healthy else 1))
    wrong = [str(row) for row in rows if not row.is_right]
    # On a busy machine a short look may see nothing move in a healthy program; that accuses nobody.
    unsure = [row for row in rows if case.is_healthy and row.state == "unknown"]
    assert len(wrong) == len(unsure) <= 1, wrong
