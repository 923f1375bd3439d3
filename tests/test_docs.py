"""What the documents promise: the first two blocks are the two commands, every command line is one that we take, every id is explained."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import textwrap
from pathlib import Path

import click
import pytest
from command_lines import all_options, commands, in_markdown, in_shell, options_in_markdown, trouble

from ray_rl_debug.commands.catalogue import explain, list_ids
from ray_rl_debug.commands.cli import VERBS
from ray_rl_debug.metrics.rules import METRIC_RULES
from ray_rl_debug.metrics.thresholds import THRESHOLDS
from ray_rl_debug.model.report import Cause
from ray_rl_debug.rules import RULES

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
OF_OTHERS = frozenset("--replace --more --custom --target".split())
"""Options in code spans that belong to our scripts, and to kubectl."""
COMMANDS = dict(commands())
WIDTH = 80
TESTS = "-m pytest -n 2"
"""The command that runs the tests, behind the name of a Python."""


def test_readmes_first_two_blocks_are_install_and_tests() -> None:
    first, second = re.findall(r"```sh\n(.+?)\n```", README, re.DOTALL)[:2]
    assert "pip install ." in first
    assert first.endswith("rayrl-debug demo")
    assert second.endswith(TESTS)
    assert second.index("torch==2.13.0") < second.index(".[test]")


def test_readme_is_three_screens() -> None:
    assert len(README.splitlines()) <= 120


def test_ci_runs_the_readmes_test_command() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "torch==2.13.0" in ci
    assert f" {TESTS}\n" in ci


def test_every_verb_is_in_the_readme() -> None:
    for verb in VERBS:
        assert f"rayrl-debug {verb.name}" in README


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_every_command_line_in_a_document_is_taken(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [t for line in in_markdown(text) if (t := trouble(line))] == []
    assert set(options_in_markdown(text)) - all_options() - OF_OTHERS == set()


def test_wrong_command_lines_are_noticed() -> None:
    text = "```sh\nsrun rayrl-debug snapshot --sample 3  # no such option\nrayrl-debug slurm lnit a\n```\n`rayrl-debug doctor --jobid 1`"
    wrong = [t for line in in_markdown(text) if (t := trouble(line))]
    assert len(wrong) == 2
    assert "--sample" in wrong[0]
    assert "lnit" in wrong[1]
    assert trouble(["snapshot", "--samples", "many"]) is not None
    assert trouble(["snapshot", "--format", "pdf"]) is not None
    assert set(options_in_markdown("`--stop-jobs` and `-o`")) == {"--stop-jobs", "-o"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (path.parent / target).exists(), target


def test_paths_and_pieces_of_code_in_the_guide_are_real() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:ray_rl_debug|tests|examples|docs|slurm)(?:/[\w.-]+)*)`", text)
    assert len(paths) > 8
    assert [p for p in paths if not (ROOT / p).exists()] == []
    sources = [path.read_text(encoding="utf-8") for p in paths if (path := ROOT / p).suffix == ".py"]
    for block in re.findall(r"^( *)```python\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE):
        piece = textwrap.dedent(block[1]).strip()
        assert any(piece in source for source in sources), piece


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_its_lines_and_its_examples_are_taken(name: str) -> None:
    command = COMMANDS[name]
    context = click.Context(command, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH)
    text = command.get_help(context)
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []
    summaries = text.split("Commands:\n")[1].split("\n\n")[0] if isinstance(command, click.Group) else ""
    assert [line for line in summaries.splitlines() if line.endswith("...")] == [], "a summary is cut"
    examples = list(in_shell(text.split("Examples:")[1].split("\n\n")[0]))
    assert examples
    assert [t for line in examples if (t := trouble(line))] == []


def test_tables_are_what_explain_says() -> None:
    spec = importlib.util.spec_from_file_location("make_tables", ROOT / "docs" / "make_tables.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    for path, text in made.pages().items():
        is_made = path.read_text(encoding="utf-8") == text
        assert is_made, f"docs/{path.name} is not what the rules, lines and checks say today: python docs/make_tables.py"
    causes = (ROOT / "docs" / "causes.md").read_text(encoding="utf-8")
    assert {rule.ID for rule in RULES} == set(re.findall(r"^\| \[(RRD\d+)\]", causes, re.MULTILINE))
    for anchor in re.findall(r"\]\(#([\w-]+)\)", causes):
        assert anchor in {made.anchor(*h.split(" ", 1)) for h in re.findall(r"^## (RRD.*)$", causes, re.MULTILINE)}


def test_the_guides_lines_name_rules_and_thresholds_that_are_there() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?:AReaL|verl|Agent-Lightning), .*\| (RRD\d+) \| (?:`(\w+)`)? ?\|$", text, re.MULTILINE)
    assert len(rows) >= 14
    rules = {r.ID: (inspect.getsource(r), explain(r.ID) or "") for r in METRIC_RULES}
    for rule, threshold in rows:
        source, story = rules[rule]
        assert story
        assert not threshold or (threshold in THRESHOLDS and f'"{threshold}"' in source), (rule, threshold)
    # numbers that the guides give
    given = {"no_eos_ratio": 0.05, "rollout_probs_diff_normal": 0.005, "rollout_probs_diff": 0.01, "behave_imp_weight_cap": 5}
    assert {name: t.value for name, t in THRESHOLDS.items() if t.source in ("guide: AReaL", "guide: verl")} == given


def test_every_metric_rule_has_its_four_heads() -> None:
    for rule in METRIC_RULES:
        text = inspect.getdoc(rule) or ""
        assert text.startswith(f"{rule.ID} {rule.NAME}\n"), rule.__name__
        for head in ("Story", "Evidence", "Remedy", "Not this when"):
            assert f"\n{head}\n" in text, (rule.ID, head)


def test_every_id_is_explained() -> None:
    for rule_id, name in list_ids():
        text = explain(rule_id)
        assert text is not None
        assert text.startswith(f"{rule_id} {name}"), rule_id


def test_every_rule_has_its_four_heads_and_a_known_cause() -> None:
    for rule in RULES:
        text = inspect.getdoc(rule) or ""
        assert text.startswith(f"{rule.ID} {rule.NAME}\n"), f"the docstring of {rule.__name__} must begin with its ID and NAME"
        for head in ("Story", "Evidence", "Remedy", "Not this when"):
            assert f"\n{head}\n" in text, f"the docstring of {rule.__name__} has no head {head}"
        assert isinstance(rule.CAUSE, Cause)


def test_ids_are_unique() -> None:
    ids = [*(rule.ID for rule in RULES), *(rule.ID for rule in METRIC_RULES)]
    assert sorted({one for one in ids if ids.count(one) > 1}) == [], "ids of several rules"
