"""Excuses that hold no longer when the same process ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_log_innocents import story

NOTED = (
    "(Trainer pid=4411) 2026-05-22 09:00:01 INFO step 12 failed\n"
    "(Trainer pid=4411) Traceback (most recent call last):\n"
    '(Trainer pid=4411)   File "/job/loop.py", line 77, in train\n'
    "(Trainer pid=4411)     loss.backward()\n"
    "(Trainer pid=4411) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.\n"
)
ENDED = "2026-05-22 09:00:{} ERROR torchelastic: failed (exitcode: 1) local_rank: 3 (pid: {}) of binary: /env/python\n"


def test_an_error_that_was_only_noted_was_not_survived_where_its_process_ends_next(tmp_path: Path) -> None:
    told = story(tmp_path, NOTED + ENDED.format("05", 4411))
    assert told is not None and told.first is not None and told.survived == ()
    assert told.first.text.startswith("torch.OutOfMemoryError") and told.first.who[0].pid == 4411


@pytest.mark.parametrize(
    "behind",
    [
        ENDED.format("05", 4412),
        "(Trainer pid=4411) 2026-05-22 09:00:03 INFO step: 13 loss: 0.2\n" + ENDED.format("05", 4411),
        ENDED.format("05", 4411).replace("09:00", "09:30"),
        "(Trainer pid=4411) Fatal Python error: Segmentation fault\n",
    ],
)
def test_it_was_survived_where_another_ends_or_it_worked_on_or_much_later_or_for_a_reason_of_its_own(tmp_path: Path, behind: str) -> None:
    told = story(tmp_path, NOTED + behind)
    assert told is not None and told.first is not None and "OutOfMemory" not in told.first.text
    assert [e.text.split(":")[0] for e in told.survived] == ["torch.OutOfMemoryError"]


def test_steps_of_others_excuse_nobody_who_ends(tmp_path: Path) -> None:
    failed = "2026-05-22 09:00:01 INFO [rank3] CUDA error: an illegal memory access was encountered\n"
    others = "2026-05-22 09:00:02 INFO [rank0] step: 13\n2026-05-22 09:00:03 INFO [rank0] step: 14\n"
    told = story(tmp_path, f"{failed}{others}2026-05-22 09:00:05 ERROR [rank3] process exits with exit code 1\n")
    assert told is not None and told.first is not None and told.first.signature == "RRD660"
    told = story(tmp_path, failed + others)
    assert told is not None and told.first is None


@pytest.mark.parametrize(("node", "survived"), [("gpu01", False), ("gpu02", True)])
def test_equal_numbers_of_processes_on_two_machines_are_two(tmp_path: Path, node: str, survived: bool) -> None:
    noted = "".join(f"gpu01: {line}\n" for line in NOTED.splitlines())
    ended = f"{node}: (Trainer pid=4411) 2026-05-22 09:00:05 ERROR process exits with exit code 1\n"
    told = story(tmp_path, noted + ended)
    assert told is not None and told.first is not None
    assert ("OutOfMemory" in told.first.text, bool(told.survived)) == (not survived, survived)
