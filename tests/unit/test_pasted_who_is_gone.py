"""Who has not come or is no more, as lists, sentences and listings tell it; and a rank that is named above what the kernel says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.formats.pasted.absent import of_line
from ray_rl_debug.formats.pasted.read import read
from ray_rl_debug.imports.folder import load


def first(folder: Path, text: str) -> tuple[str, set[str]]:
    (folder / "post.md").write_text(text)
    snapshot = load([folder / "post.md"]).snapshot
    assert snapshot is not None
    finding = next(f for f in diagnose(snapshot).findings if f.root)
    return finding.cause.value, {w.label for w in finding.who}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("- DP1 / TP4-7: empty batch -> returns at once -> never calls this `all_reduce`", "DP1"),
        ("* rank 3: takes the cached branch, never enters the barrier", "rank 3"),
        ("We drained node7 for an update, since then all hang in `all_reduce`.", "node7"),
        ("the scheduler preempted host 4 at 03:10", "host 4"),
        ("If we drained node7 it would hang too.", None),
        ("- DP1: would return, and never call it", None),
        ("- rank 3: never mind", None),
    ],
)
def test_a_line_tells_who_has_not_come(text: str, name: str | None) -> None:
    told = of_line(text)
    assert (told.name if told is not None else None) == name


def test_all_but_one_wait_for_that_one(tmp_path: Path) -> None:
    assert first(tmp_path, "All ranks but 6 wait in `all_gather` of the first unit.\n") == ("straggler", {"job/6"})


def test_a_rank_above_a_system_call_is_its_process() -> None:
    found = read("Rank 6 (pid 40881):\n\n```\n$ strace -p 40881\nstrace: Process 40881 attached\npread64(87,\n```\n")
    assert [(d.pid, d.rank, d.threads[0].call) for d in found] == [(40881, 6, "pread64")]


def test_a_tree_of_processes_without_their_times(tmp_path: Path) -> None:
    tree = "```\n  812 ?  Ssl  torchrun t.py\n  820 ?  Rl    \\_ python t.py\n  821 ?  Z     \\_ [python] <defunct>\n```\n"
    assert [(d.pid, d.state) for d in read(tree)] == [(812, "S"), (820, "R"), (821, "Z")]


def test_one_that_has_ended_is_named_before_one_that_was_not_read(tmp_path: Path) -> None:
    text = """Thread 8812 (idle): "MainThread"
    put (multiprocessing/queues.py:92)
    feed (pipeline/pool.py:90)
    <module> (pipeline/__main__.py:14)

u   8812     1  0 10:02 ?  00:00:31 python -m pipeline
u   8830  8812  0 10:02 ?  00:12:02 [python] <defunct>
u   8831  8812  0 10:02 ?  00:12:09 python -m pipeline
"""
    assert first(tmp_path, text) == ("rank-died", {"[python] (pid 8830)"})


def test_a_thread_that_somebody_says_is_gone_ends_no_wait(tmp_path: Path) -> None:
    text = "The rollout thread is in `put` (`queue.py:140`), its queue is full. The trainer thread raised and is gone, so nobody takes any.\n"
    assert first(tmp_path, text)[0] == "lock-deadlock"


def test_a_thread_is_no_rank_that_others_wait_for(tmp_path: Path) -> None:
    text = "Ranks 0-3 hang in `all_reduce`. The loader thread died a day before.\n"
    assert first(tmp_path, text)[0] == "collective-stalled"


def test_words_of_a_gate_that_admits_nothing(tmp_path: Path) -> None:
    text = "The trainer is stuck in `prepare_batch` (`areal/api/workflow_api.py:310`), the executor says capacity=0, running=0.\n"
    assert first(tmp_path, text) == ("staleness-gate", {"trainer"})
