"""A mark that all lines of a log have in front tells nothing of one of them: what is said without it is said with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_log_corpus import blocks, report_on
from test_log_innocents import RAISED, story

from ray_rl_debug.logs.window import common_writer
from ray_rl_debug.model.snapshot.log_book import LogWriter

MARKS = {
    "ray": "(TaskRunner pid=4242) ",
    "ray in colours": "\x1b[36m(TaskRunner pid=4242)\x1b[0m ",
    "rank": "[rank3]: ",
    "elastic": "[default3]:",
    "compose": "trainer-1  | ",
    "mpirun": "[1,3]<stderr>:",
    "srun": "3: ",
    "pod": "[pod/trainer-0/main] ",
    "journal": "Nov 23 08:00:00 gpu-3 train[812]: ",
    "stamps": "2026-11-23T08:00:00.123456789Z ",
}
PART = 61
"""Each so many-th block: all of them take minutes."""
TOLD_WITH_IT_ALONE = 1
"""Innocent blocks of one mark that are accused with it: steps behind what left a process whose number is known."""


def marked(lines: list[str], mark: str) -> list[str]:
    return [mark + line for line in lines]


@pytest.mark.parametrize("mark", MARKS)
def test_innocent_blocks_stay_innocent(mark: str, tmp_path: Path) -> None:
    accused = [b["id"] for b in blocks("innocent.jsonl")[::PART] if _accused(report_on(tmp_path, marked(b["lines"], MARKS[mark]))) is not None]
    assert len(accused) <= TOLD_WITH_IT_ALONE, accused


BODY = RAISED.replace("in load", "in main")


@pytest.mark.parametrize("mark", MARKS)
def test_errors_are_still_told(mark: str, tmp_path: Path) -> None:
    missed = [b["id"] for b in blocks("unseen.jsonl")[::PART] if _first(report_on(tmp_path, marked(b["lines"], MARKS[mark]))) is None]
    assert missed == []


def test_the_process_of_the_marks_is_told(tmp_path: Path) -> None:
    told = story(tmp_path, "".join(f"(TaskRunner pid=4242) {line}\n" for line in f"wandb: started\n{BODY}KeyError: 'b'".splitlines()))
    assert told is not None and told.first is not None
    assert (told.first.who[0].role, told.first.who[0].pid) == ("TaskRunner", 4242)


def test_what_lines_share_is_the_writer() -> None:
    assert common_writer(b"(A pid=1) x\n(A pid=1) [rank2]: y\n") == LogWriter(pid=1, program="A")
    assert common_writer(b"(A pid=1) x\n(A pid=2) y\n") is None
    assert common_writer(b"[rank2]: x\n\n[rank2]: y\n") == LogWriter(rank="2")
    assert common_writer(b"Nov 23 08:00:00 gpu-3 sshd[812]: x\n", near_s=1.79e9) is None
    assert common_writer(b"Nov 23 08:00:00 gpu-3 train[812]: x\n", near_s=1.79e9) == LogWriter(node="gpu-3", pid=812, program="train")
    assert common_writer(b"srun: error: x\nsrun: y\n") is None
    assert common_writer(b"") is None


def test_pairs_and_objects_behind_a_mark_are_records(tmp_path: Path) -> None:
    pairs = 'time="2026-01-13T10:00:01Z" level=fatal msg="listen tcp :8088: bind: address already in use"'
    told = story(tmp_path, f"(Sandbox pid=7) {pairs}\n")
    assert told is not None and told.first is not None and told.first.who[0].pid == 7
    told = story(tmp_path, '[default6]:{"ts": "2026-05-05T05:05:05.120Z", "level": "error", "msg": "the step failed"}\n')
    assert told is not None and [(e.text, e.who[0].rank) for e in told.noted] == [("the step failed", 6)]


def test_records_within_records_and_in_colours(tmp_path: Path) -> None:
    pairs = 'time=2026-01-13T10:00:01Z level=fatal msg="cannot listen on port 8088" rank=4'
    for row in (json.dumps({"log": f"{pairs}\n", "stream": "stderr", "time": "2026-01-13T10:00:01.2Z"}), f"\x1b[31m{pairs}\x1b[0m"):
        told = story(tmp_path, f"{row}\n")
        assert told is not None and told.first is not None and (told.first.text, told.first.who[0].rank) == ("cannot listen on port 8088", 4)


def _accused(report: Any) -> Any:
    """What is told as a failure; what is only noted accuses nobody."""
    story = report.story if report is not None else None
    return (story.first or next(iter(story.then), None)) if story is not None else None


def _first(report: Any) -> Any:
    story = report.story if report is not None else None
    return (story.first or next(iter((*story.noted, *story.then)), None)) if story is not None else None
