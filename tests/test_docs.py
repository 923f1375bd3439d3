"""What the documents promise: the first two blocks are the two commands, every verb is shown, every id is explained."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from ray_rl_debug.commands.catalogue import explain, list_ids
from ray_rl_debug.commands.cli import VERBS
from ray_rl_debug.model.report import Cause
from ray_rl_debug.rules import RULES

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_readmes_first_two_blocks_are_install_and_tests() -> None:
    first, second = re.findall(r"```sh\n(.+?)\n```", README, re.DOTALL)[:2]
    assert "pip install ." in first
    assert first.endswith("rayrl-debug demo")
    assert second.endswith("-m pytest")
    assert second.index("torch==2.13.0") < second.index(".[test]")


def test_ci_runs_the_readmes_test_command() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "torch==2.13.0" in ci
    assert "-m pytest" in ci


def test_every_verb_is_in_the_readme() -> None:
    for verb in VERBS:
        assert f"rayrl-debug {verb.name}" in README


def test_every_rule_is_in_the_readmes_table() -> None:
    told = {row[0]: row[1] for row in re.findall(r"^\| (RRD[1-6]\d\d) \| ([^|]+) \|", README, re.MULTILINE)}
    assert told == {rule.ID: rule.NAME for rule in RULES}


def test_every_id_is_explained() -> None:
    for rule_id, name in list_ids():
        text = explain(rule_id)
        assert text is not None
        assert text.startswith(f"{rule_id} {name}"), rule_id


def test_every_rule_has_its_four_heads_and_a_known_cause() -> None:
    for rule in RULES:
        text = inspect.getdoc(rule) or ""
        assert text.startswith(f"{rule.ID} {rule.NAME}\n"), rule.__name__
        for head in ("Story", "Evidence", "Remedy", "Not this when"):
            assert f"\n{head}\n" in text, (rule.ID, head)
        assert isinstance(rule.CAUSE, Cause)


def test_ids_are_unique() -> None:
    ids = [rule.ID for rule in RULES]
    assert len(ids) == len(set(ids))
