"""Lines that print a value, and what one line says of a complaint or of an end."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_log_innocents import first, story


@pytest.mark.parametrize(
    "line",
    [
        "fatal_patterns: [\"CUDA error\", 'Segmentation fault (core dumped)']",
        "Generated: 'Aborted (core dumped)'",
        'Generated[3]: "it says \\"NCCL WARN\\", then RuntimeError: CUDA error"',
        "{'run_result': {'return_code': 1, 'stderr': 'Traceback (most recent call last):\\n  ModuleNotFoundError: No module named x'}}",
        "{'stdout': '', 'stderr': 'Segmentation fault (core dumped)'}",
    ],
)
def test_a_printed_value_is_no_failure(tmp_path: Path, line: str) -> None:
    assert first(tmp_path, f"{line}\n") is None


@pytest.mark.parametrize(
    "line",
    [
        "reason: 'Segmentation fault (core dumped)'",
        "KeyError: 'prompt'",
        "Generated: 'x' Aborted (core dumped)",
        "{'error': 'RuntimeError: CUDA error: an illegal memory access was encountered'}",
    ],
)
def test_a_value_that_says_what_went_wrong(tmp_path: Path, line: str) -> None:
    assert first(tmp_path, f"{line}\n") is not None


def test_one_step_excuses_a_record_that_gives_nothing_up(tmp_path: Path) -> None:
    said = "[Error] [omni.plugin] the pool of contacts is too small{}\n[Error] [rtx.plugin] the picture is too small\n"
    assert first(tmp_path, said.format("") + "iteration 12/1500 reward 3.1\n") is None
    assert first(tmp_path, said.format("") + "another line\n") is not None
    assert first(tmp_path, said.format(", giving up") + "iteration 12/1500 reward 3.1\n") is not None


def test_an_error_code_tells_that_a_process_ended_not_why(tmp_path: Path) -> None:
    told = story(tmp_path, "slurmstepd: error: pyxis: child 7 failed with error code: 1\nslurmstepd: error: pyxis: failed to import docker image\n")
    assert told is not None and told.first is not None and told.first.text == "pyxis: failed to import docker image"


def test_what_a_thrown_object_says_is_shown_with_it(tmp_path: Path) -> None:
    said = (
        "[2026-03-02 10:00:01 TP1] terminate called after throwing an instance of 'c10::Error'\n[2026-03-02 10:00:01 TP1]   what():  no such card\n"
    )
    told = story(tmp_path, said)
    assert told is not None and told.first is not None and told.first.lines == ("what():  no such card",)
