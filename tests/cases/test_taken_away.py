"""A fact that is missing accuses nobody else: a sample of all facts of all recorded snapshots, each taken away in turn."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from cases.taken_away import wrong

from ray_rl_debug.imports.folder import load

TESTS = Path(__file__).resolve().parents[1]
FILES = sorted([*(TESTS / "cases").glob("RRD*/*.json.gz"), *(TESTS / "kinds" / "recorded").glob("*.json.gz")])
ONE_OF = 1500
ONE_OF_LONG = 25


def check(file: Path, every: int) -> None:
    snapshot = load((file,)).snapshot
    assert snapshot is not None
    start = zlib.crc32(file.name.encode()) % every
    found = [f"without {what}: {report.findings[0].summary}" for what, report, _ in wrong(snapshot, every=every, start=start)]
    assert found == []


@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}/{f.name.removesuffix('.json.gz')}")
def test_a_missing_fact_accuses_nobody_else(file: Path) -> None:
    check(file, ONE_OF)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("file", FILES, ids=lambda f: f"{f.parent.name}/{f.name.removesuffix('.json.gz')}")
def test_many_missing_facts_accuse_nobody_else(file: Path) -> None:
    check(file, ONE_OF_LONG)
