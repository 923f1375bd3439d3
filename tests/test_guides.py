"""The page of the guides: each paragraph has its row, each row a command that we take, ids that are explained, and tests that are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from command_lines import in_shell, trouble

from ray_rl_debug.commands.catalogue import explain

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "guides.md").read_text(encoding="utf-8")
PARAGRAPHS = {
    "AReaL: debugging guide": (
        "Launch the standalone inference server",
        "individual run",
        "many concurrent runs",
        "Integration test with AReaL",
        "max_head_offpolicyness",
        "Rollout consistency",
        "Symptoms 1",
        "Symptoms 2",
        "Symptoms 3",
        "exception on partial ranks",
        "mismatched collective calls",
        "shape mismatch in PP",
        "Cause: NCCL timeout",
        "deadlock in initialization",
        "Step 1",
        "Step 2",
        "pattern A",
        "pattern B",
        "pattern C",
        "Step 4",
        "Tips",
    ),
    "AReaL: earlier debugging guide": (
        "standalone SGLang server",
        "debug program",
        "Save generated data",
        "pre-generated data",
        "stop tokens",
        "Transformers and inference engine",
    ),
    "AReaL: RL performance guide": (
        "synchronous RL",
        "rewards not increasing",
        "baseline",
        "Reward metrics",
        "variance in task_reward",
        "importance_weight",
        "behave_imp_weight",
        "no_eos_ratio",
    ),
    "verl: frequently asked questions": (
        "breakpoint",
        "register worker",
        "multi-node",
        "Slurm",
        "TensorDict",
        "Illegal memory access",
        "Checkpoints",
        "Triton",
        "batch size",
        "timeline",
        "proxy",
        "grad_norm",
    ),
    "Agent-Lightning: debugging training failures and tracing": (
        "three layers",
        "KeyErrors",
        "NaN or Inf",
        "Checkpoint loading",
        "run_until_all_finished",
        "does not start",
        "trace_id",
        "InMemoryWeaveTraceServer",
        "Empty trace",
        "silently 0",
        "walkthrough",
    ),
}
"""What each guide speaks of, in its own order: a word that its row must have."""


class Row(NamedTuple):
    guide: str
    paragraph: str
    by_hand: str
    command: str
    shown_by: str


def rows() -> Iterator[Row]:
    for section in PAGE.split("\n## ")[1:]:
        guide, _, text = section.partition("\n")
        for line in text.splitlines():
            if line.startswith("| ") and not line.startswith(("| ---", "| paragraph")):
                yield Row(guide, *(cell.strip() for cell in line.strip("|").split(" | ")))


ROWS = list(rows())


def test_each_paragraph_of_each_guide_has_its_row() -> None:
    found = {guide: [r.paragraph for r in ROWS if r.guide == guide] for guide in PARAGRAPHS}
    assert {r.guide for r in ROWS} == set(PARAGRAPHS)
    for guide, words in PARAGRAPHS.items():
        assert len(found[guide]) == len(words), guide
        assert [w for w, p in zip(words, found[guide], strict=True) if w not in p] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.paragraph)
def test_each_row_has_a_command_that_we_take(row: Row) -> None:
    spans = re.findall(r"`([^`]*rayrl-debug [^`]*)`", row.command)
    lines = [line for span in spans for line in in_shell(span)]
    assert lines or "*none*" in row.command
    assert [t for line in lines if (t := trouble(line))] == []
    if "*none*" in row.command:
        assert re.search(r"\*none\*(:| for)", row.command), "say why"


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.paragraph)
def test_each_id_is_explained(row: Row) -> None:
    assert [i for i in re.findall(r"RRD\d+", row.command) if explain(i) is None] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.paragraph)
def test_what_shows_it_is_there(row: Row) -> None:
    shown = re.findall(r"`([^`]+)`", row.shown_by)
    assert shown or row.command.startswith("*none*")
    for name in shown:
        path, _, test = name.partition("::")
        assert (ROOT / path).exists(), path
        if test:
            functions = [n.name for n in ast.parse((ROOT / path).read_text(encoding="utf-8")).body if isinstance(n, ast.FunctionDef)]
            assert test in functions, name


def test_a_row_that_lies_is_found() -> None:
    assert trouble(next(in_shell("rayrl-debug rollout trie x"))) is not None
    assert explain("RRD298") is None
