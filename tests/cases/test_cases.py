"""Every recorded case diagnosed again: state, who and cause as the table says, and each rule with a hang it names and a quiet run it leaves alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from cases.store import HERE, gives, row
from cases.texts import text_file, text_of

from ray_rl_debug.commands.catalogue import RULES
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.snapshot import Snapshot

RULE_IDS = [rule.ID for rule in RULES]
NOT_RECORDED: frozenset[str] = frozenset()
"""Rules without a recorded hang, each with its reason; none today."""


class Case(NamedTuple):
    """One line of the table and its file."""

    rule: str
    kind: str
    scenario: str
    state: str
    who: str
    cause: str
    file: Path


def read_table() -> list[Case]:
    cases: list[Case] = []
    for line in (HERE / "table.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            rule, kind, scenario, state, who, cause = line.split()
            named = HERE / rule / f"{kind}-{scenario}.json.gz"
            cases.append(Case(rule, kind, scenario, state, who, cause, named if named.exists() else HERE / rule / f"{kind}.json.gz"))
    return cases


CASES = read_table()


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.rule}-{c.kind}-{c.scenario}")
def test_case(case: Case) -> None:
    snapshot = load((case.file,)).snapshot
    assert snapshot is not None
    report = diagnose(snapshot)
    assert row(report) == (case.state, case.who, case.cause)
    assert gives(report, case.rule, roots=case.kind == "hang") == (case.kind == "hang")


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.rule}-{c.kind}-{c.scenario}")
def test_what_a_person_reads(case: Case) -> None:
    assert text_of(case.file) == text_file(case.file).read_text(), "PYTHONPATH=tests python -m cases.texts writes it; read the difference"


def test_every_rule_has_both() -> None:
    recorded = {(case.rule, case.kind) for case in CASES}
    for kind, allowed in (("hang", NOT_RECORDED), ("quiet", frozenset())):
        missing = {rule for rule in RULE_IDS if (rule, kind) not in recorded}
        assert missing == allowed, f"no line of kind {kind} in tests/cases/table.txt: see 'Record a case' in CONTRIBUTING.md"


def test_table_and_files_are_the_same_cases() -> None:
    files = set(HERE.glob("RRD*/*.json.gz"))
    assert [f"{case.rule} {case.kind} {case.scenario}" for case in CASES if case.file not in files] == [], "lines of table.txt without a file"
    assert sorted(str(f.relative_to(HERE)) for f in files - {case.file for case in CASES}) == [], "files without a line in table.txt"
    assert {text_file(f) for f in files} == set(HERE.glob("RRD*/*.txt")), "texts without a case"
    assert len(CASES) == len(files), "two lines of table.txt for one file"
    assert sum(f.stat().st_size for f in files) < 4 << 20


def test_nothing_of_a_machine_is_left() -> None:
    for case in CASES:
        snapshot = load((case.file,)).snapshot
        assert isinstance(snapshot, Snapshot)
        assert all(re.fullmatch(r"node\d+|imported", node.name) for node in snapshot.nodes)
        paths = {f.file for n in snapshot.nodes for f in n.frames} | {p.cwd or "" for n in snapshot.nodes for p in n.processes}
        paths |= {f.path for n in snapshot.nodes for p in n.processes for f in p.files or ()}
        roots = {path.split("/")[1] for path in paths if path.startswith("/")}
        assert roots <= {"srv", "opt", "usr", "tmp", "dev", "proc", "sys", "run"}, roots
