"""What a program shows of another one, and what it says of a part, a request or an answer that failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_log_innocents import RAISED, first, story

WRITTEN = 'Traceback (most recent call last):\n  File "{}", line 3, in <module>\n    print(a[9])\nIndexError: list index out of range\n'


@pytest.mark.parametrize(
    ("opens", "closes"),
    [
        ("--BEGIN TOOL OUTPUT--\n", "--END TOOL OUTPUT--\n"),
        ("=== sample 3 ===\n", "================\n"),
        ("--- completion (idx 3) ---\n", "--- end completion ---\n"),
        ("------- Captured stderr call -------\n", "tests/test_a.py::test_b PASSED [ 9%]\n"),
        ("[2026-03-02 10:00:01] sandbox job 7: stderr follows\n", "[2026-03-02 10:00:01] sandbox job 7: took 31 ms of its time\n"),
        ("10:00:01 - agent:INFO: observation (exit code 1):\n", "10:00:02 - agent:INFO: edits a file\n"),
    ],
)
def test_what_stands_between_lines_that_show_it(tmp_path: Path, opens: str, closes: str) -> None:
    raised = f"{RAISED}KeyError: 'x'\n"
    assert first(tmp_path, opens + raised + closes) is None
    assert first(tmp_path, opens + raised) == "KeyError: 'x'"
    assert first(tmp_path, raised + closes) == "KeyError: 'x'"


def test_the_output_of_one_of_its_own_processes_is_no_other_programs(tmp_path: Path) -> None:
    text = f"[2026-03-02 10:00:01] rank 7: stderr follows\n{RAISED}KeyError: 'x'\n[2026-03-02 10:00:01] rank 6 is up\n"
    assert first(tmp_path, text) == "KeyError: 'x'"
    text = f"--- output of worker 3 ---\n{RAISED}KeyError: 'x'\n--------------------------\n"
    assert first(tmp_path, text) == "KeyError: 'x'"


def test_a_record_behind_shown_output_may_tell_of_an_end(tmp_path: Path) -> None:
    text = f"[2026-03-02 10:00:01] candidate 7: stderr follows\n{RAISED}KeyError: 'x'\n[2026-03-02 10:00:01] {{}}\n"
    assert first(tmp_path, text.format("candidate 8 is next")) is None
    assert first(tmp_path, text.format("exiting")) == "KeyError: 'x'"


def test_code_that_a_program_wrote_to_try_it(tmp_path: Path) -> None:
    behind = "scored 0\nscored 1\nscored 1\n"
    assert first(tmp_path, WRITTEN.format("/tmp/tmpx1/solution.py") + behind) is None
    assert first(tmp_path, WRITTEN.format("/tmp/tmpx1/solution.py")) is not None
    assert first(tmp_path, WRITTEN.format("/tmp/tmpx1/solution.py") + "sending a closing signal\nexiting\n") is not None
    assert first(tmp_path, WRITTEN.format("/tmp/ray/session_1/train.py") + behind) is not None


def test_a_grader_that_caught_its_own_error(tmp_path: Path) -> None:
    raised = 'Traceback (most recent call last):\n  File "{}", line 3, in compare\n    float(a)\nTypeError: cannot convert\n'
    record = "(Reward pid=6) ERROR:2026-03-02 10:00:01,100:comparison failed\n"
    said = record + "".join(f"(Reward pid=6) {line}" for line in raised.splitlines(keepends=True))
    assert first(tmp_path, said.format("/opt/lib/python3.11/site-packages/math_verify/grader.py")) is None
    assert first(tmp_path, said.format("/opt/lib/python3.11/site-packages/torch/nn/grader.py")) is not None


def test_an_exception_of_java_belongs_to_the_record_that_prints_it(tmp_path: Path) -> None:
    raised = "java.io.IOException: bad link\n\tat org.fs.Stream.run(Stream.java:7)\n"
    assert first(tmp_path, f"26/03/02 10:00:01 WARN fs.Stream: a block was not made\n{raised}") is None
    assert first(tmp_path, f"26/03/02 10:00:01 ERROR fs.Stream: a block was not made\n{raised}") is not None
    assert first(tmp_path, raised) is not None
    assert first(tmp_path, "Exception in thread \"main\" java.lang.NoSuchMethodError: 'a'\n\tat a.Main.main(Main.java:7)\n") is not None


def test_an_error_of_one_request_ends_no_server(tmp_path: Path) -> None:
    said = "[2026-03-02 10:00:01] ERROR manager.py:7: no state of {}\n"
    assert first(tmp_path, said.format("rid='a71f0'")) is None
    assert first(tmp_path, said.format("the model")) is not None


def test_a_file_that_could_not_be_read_and_the_one_that_was_taken(tmp_path: Path) -> None:
    said = "could not read /ckpt/300: PytorchStreamReader failed reading zip archive\n"
    assert first(tmp_path, f"{said}loaded /ckpt/200\n") is None
    assert first(tmp_path, f"{said}all ranks are told\n") is not None
    assert first(tmp_path, "RuntimeError: PytorchStreamReader failed reading zip archive\nloaded /ckpt/200\n") is not None


def test_a_part_that_a_program_can_do_without(tmp_path: Path) -> None:
    said = "FlashAttention 3 is not there: cannot import name 'flash_attn_interface'\n"
    assert first(tmp_path, f"{said}uses another kernel\nreads the weights\n reads the data\n") is None
    assert first(tmp_path, said) is not None


def test_the_item_of_a_list_that_is_quoted(tmp_path: Path) -> None:
    assert first(tmp_path, 'error_patterns:\n  - "CUDA error: an illegal memory access was encountered"\n') is None
    assert first(tmp_path, "  - CUDA error: an illegal memory access was encountered\n") is not None


def test_who_asks_and_who_is_asked(tmp_path: Path) -> None:
    asked = "My pod dies with OOMKilled and exit code 137\n"
    assert first(tmp_path, f"user> {asked}") is None
    assert first(tmp_path, asked) is not None
    assert first(tmp_path, " 1  What does exit code 139 mean?      Segmentation fault\n") is None
    assert first(tmp_path, "exit code 139: Segmentation fault\n") is not None


@pytest.mark.parametrize(("key", "is_told"), [("obs", False), ("result", False), ("error", True), ("exc_info", True)])
def test_an_object_holds_a_traceback_as_data_or_says_what_went_wrong(tmp_path: Path, key: str, is_told: bool) -> None:
    row = '{{"traj": 12, "{}": "Traceback (most recent call last):\\n  File \\"m.py\\", line 3\\nZeroDivisionError: by zero", "done": false}}\n'
    assert (first(tmp_path, row.format(key)) is not None) == is_told


def test_the_kernel_names_a_program_that_was_tried(tmp_path: Path) -> None:
    said = "[ 8123.110221] {}[9120]: segfault at 0 ip 000055d0 sp 00007ffc error 4 in x[55d0+1000]\n"
    assert first(tmp_path, said.format("candidate_17")) is None
    assert first(tmp_path, said.format("python")) is not None


def test_interrupts_behind_the_end_of_ray(tmp_path: Path) -> None:
    stopped = "2026-11-23 09:00:03,310 SUCC scripts.py:1188 -- Stopped {} 31 Ray processes.\n"
    assert first(tmp_path, f"{stopped.format('all')}{RAISED}KeyboardInterrupt\n") is None
    assert first(tmp_path, f"{stopped.format('not all')}{RAISED}KeyboardInterrupt\n") is not None


def test_a_loader_short_of_memory_is_told_with_its_worker(tmp_path: Path) -> None:
    short = "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"
    told = story(tmp_path, f"{short}RuntimeError: DataLoader worker (pid 9120) is killed by signal: Bus error.\n")
    assert told is not None and told.first is not None and told.first.who[0].pid == 9120


def test_what_a_tool_gave_between_fences_is_not_the_programs(tmp_path: Path) -> None:
    given = f"```\n{RAISED}KeyError: 'x'\n```\n"
    assert first(tmp_path, f"Observation: \n{given}") is None
    assert first(tmp_path, f"The job ended:\n{given}") is not None
    assert first(tmp_path, f"Observation: \nnone\n```\nx = 1\n```\n{RAISED}KeyError: 'x'\n") is not None


def test_a_panel_is_a_sample_where_no_error_is_its_heading(tmp_path: Path) -> None:
    row = "│ Missing option '--model'. │\n"
    assert first(tmp_path, f"╭─ Error ───╮\n{row}") is not None
    assert first(tmp_path, f"╭─ Answer ───╮\n{row}") is None


def test_a_daemon_of_the_machine_ends_no_job(tmp_path: Path) -> None:
    assert first(tmp_path, "nvidia-persistenced: error: Failed to query NVIDIA devices.\n") is None
    assert first(tmp_path, "nvidia-smi: error: Failed to query NVIDIA devices.\n") is not None
