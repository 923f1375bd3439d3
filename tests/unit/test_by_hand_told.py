"""How a report on collected stacks is told: on a terminal, as Markdown, as a page, as a document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from unit.stacks_by_hand import GATHER, STEP, dump, judge

from ray_rl_debug.model.codec import decode_report, encode
from ray_rl_debug.model.report import Report
from ray_rl_debug.render import html, markdown, terminal


@pytest.fixture
def report(tmp_path: Path) -> Report:
    waiting = [dump(4000 + n, f"{GATHER}\n{STEP}") for n in range(3)]
    return judge(tmp_path, [*waiting, dump(4008, f"grade (<b>reward</b>.py:61)\n{STEP}", state="active")])


def test_terminal_tells_for_against_and_what_next(report: Report) -> None:
    lines = list(terminal.render(report, width=100, colour=False))
    heads = [line.split("  ")[0].strip() if not line.startswith("  ") else line.strip() for line in lines]
    order = [heads.index(head) for head in ("evidence", "against", "remedy", "dump next", "assumed", "stacks")]
    assert order == sorted(order)
    text = "\n".join(lines)
    assert "[look0.txt:" in text
    assert "sleep 30; py-spy dump --native --pid 4008" in text
    assert "- other lines: it works or goes round in a loop" in text
    assert lines[-1] == "next: sleep 30; py-spy dump --native --pid 4008"


def test_markdown_can_be_pasted_back(report: Report) -> None:
    lines = list(markdown.render(report))
    for line in ("For it:", "Against it:", "### Assumed", "### Dump next"):
        assert line in lines
    assert "   sleep 30; py-spy dump --native --pid 4008" in lines
    assert any("(look0.txt:" in line for line in lines)


def test_page_tells_the_same_and_escapes_it(report: Report) -> None:
    page = html.render(report)
    assert '<h2 id="h-next">What to dump next</h2>' in page
    assert "What speaks against it" in page
    assert "<code id=look0>sleep 30; py-spy dump --native --pid 4008</code>" in page
    assert "<b>reward</b>" not in page
    assert "<i class=source>look0.txt:" in page


def test_document_holds_it_all_and_is_read_again(report: Report) -> None:
    document = json.loads(encode(report))
    assert document["schema"] == "rayrl-debug/report/1"
    assert document["next_dumps"][0]["outcomes"][0] == {
        "seen": "the same lines",
        "means": document["next_dumps"][0]["outcomes"][0]["means"],
    }
    assert document["findings"][0]["against"][0]["source"].startswith("look0.txt:")
    assert document["assumed"][0].startswith("the run hangs")
    assert decode_report(encode(report)) == report


def test_control_characters_of_a_file_steer_no_terminal(tmp_path: Path) -> None:
    report = judge(tmp_path, [dump(1, f"gra\x1b[31mde (a.py:1)\n{STEP}"), *(dump(n, f"{GATHER}\n{STEP}") for n in (2, 3))])
    assert "\x1b" not in "\n".join(terminal.render(report, width=100, colour=False))
