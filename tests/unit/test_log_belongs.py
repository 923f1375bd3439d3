"""What belongs together: a record and its next line, a miss and what came of it, an end and who asked for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_log_innocents import first, story

from ray_rl_debug.logs.undone import is_done_behind


def test_an_exception_right_below_a_record_is_of_its_process(tmp_path: Path) -> None:
    record = "[2026-05-22 09:10:01,120] [ERROR] [engine.py:2811] [Rank 0] could not load the weights\n"
    told = story(tmp_path, f"{record}AssertionError: ZeRO-3 checkpoint does not fit the world size\n")
    assert told is not None and told.first is not None and [w.rank for w in told.first.who] == [0]
    told = story(tmp_path, f"{record}\nAssertionError: ZeRO-3 checkpoint does not fit the world size\n")
    assert told is not None and told.first is not None and [w.rank for w in told.first.who] == [None]


def test_what_a_result_of_nccl_means_belongs_to_the_record_above(tmp_path: Path) -> None:
    record = (
        "[rank4]:[E520 19:00:03.114 ProcessGroupNCCL.cpp:1895] [PG ID 0 Rank 4] watchdog ended with exception: NCCL error: remote process exited\n"
    )
    told = story(tmp_path, f"{record}ncclRemoteError: A call failed possibly due to a network error.\n")
    assert told is not None and told.first is not None and [w.rank for w in told.first.who] == [4]


def test_a_source_line_below_its_frame_needs_no_blanks_where_each_line_is_marked(tmp_path: Path) -> None:
    mark = "ERROR 2026-06-15T14:10:59.392128Z "
    lines = ["Traceback (most recent call last):", 'File "/job/a.py", line 7, in <module>', "main.run_forever()", "ValueError: no such part"]
    told = story(tmp_path, "".join(f"{mark}{line}\n" for line in lines))
    assert told is not None and [(e.kind, e.text) for e in told.noted] == [("traceback", "ValueError: no such part")]


def test_a_unit_of_the_machine_ends_no_run_whatever_it_is_called(tmp_path: Path) -> None:
    ended = "May 19 11:30:02 n3 systemd[1]: {}.service: Main process exited, code=exited, status=1/FAILURE\n"
    for unit in ("man-db", "fstrim", "apt-daily-upgrade", "backup@daily"):
        told = story(tmp_path, ended.format(unit))
        assert told is None or told.first is None, unit
    for unit in ("rl-trainer", "slurmd", "vllm@1", "ray-worker"):
        told = story(tmp_path, ended.format(unit))
        assert told is not None and told.first is not None, unit


def test_who_was_late_and_came_has_come(tmp_path: Path) -> None:
    late = (
        "[2026-05-21 08:09:31,551 W 812 812] (raylet) worker_pool.cc:620: "
        "Some workers of the worker process(9120) have not registered within the timeout.\n"
    )
    came = "[2026-05-21 08:09:40,551 I 812 812] (raylet) worker_pool.cc:811: Worker {} registered.\n"
    assert first(tmp_path, late + came.format(9120)) is None
    assert first(tmp_path, late + came.format(9121)) is not None


def test_the_same_thing_has_to_be_done() -> None:
    assert is_done_behind("Failed to connect to 10.0.0.4:6379", "Connected to 10.0.0.4:6379")
    assert is_done_behind("could not acquire lock-7", "lock-7 acquired after 3 s")
    assert not is_done_behind("Failed to connect to 10.0.0.4:6379", "connected to the tracker")
    assert not is_done_behind("Failed to connect to 10.0.0.4:6379", "10.0.0.4:6379 is not connected")
    assert not is_done_behind("lost 10.0.0.4:6379", "connected to 10.0.0.4:6379")


def test_the_last_word_of_an_exception_counts(tmp_path: Path) -> None:
    said = "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling PutObject (reached max retries: 1)"
    told = story(tmp_path, f"{said}: reduce your rate; part 41 goes back to the queue\n")
    assert told is None or told.first is None
    told = story(tmp_path, f"{said}\n")
    assert told is not None and told.first is not None


def test_what_fails_when_something_is_done_is_no_condition(tmp_path: Path) -> None:
    assert first(tmp_path, "[Engine-LLM][ERROR] Encountered an error when fetching a request: Assertion failed: a <= b\n") is not None
    assert first(tmp_path, "[Engine-LLM][ERROR] look at the log when the engine fails\n") is None


@pytest.mark.parametrize("said", ['GGML_ASSERT: cuda.cu:88: !"CUDA error"', "/src/ops.c:812: GGML_ASSERT(n > 0) failed"])
def test_an_assertion_of_a_library_ends_its_program(tmp_path: Path, said: str) -> None:
    told = story(tmp_path, f"{said}\n")
    assert told is not None and told.first is not None and told.first.kind == "death"


def test_what_the_shell_of_a_tool_lacks_starts_no_run(tmp_path: Path) -> None:
    told = story(tmp_path, "bash: line 1: rg: command not found\n")
    assert told is None or told.first is None
    told = story(tmp_path, "bash: line 1: torchrun: command not found\n")
    assert told is not None and told.first is not None


def test_an_engine_that_was_told_to_shut_down_has_no_dead_core(tmp_path: Path) -> None:
    died = "ERROR 05-19 11:02:42 [core_client.py:605] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.\n"
    asked = "(EngineCore_DP0 pid=2377) INFO 05-19 11:02:41 [core.py:1120] Shutdown initiated (timeout=0)\n"
    assert first(tmp_path, asked + died) is None
    assert first(tmp_path, died + asked) is not None


def test_a_job_of_ray_failed_also_by_its_status_message(tmp_path: Path) -> None:
    told = story(tmp_path, "Status message: Job entrypoint command failed with exit code 137, the process was killed.\n")
    assert told is not None and told.first is not None


def test_a_fatal_error_is_fatal(tmp_path: Path) -> None:
    told = story(tmp_path, "[Rank:6] FATAL ERROR :: MODULE:PT_BRIDGE Exception in Launch thread...\n")
    assert told is not None and told.first is not None and [w.rank for w in told.first.who] == [6]


def test_a_code_of_zero_at_the_end_of_a_sentence_teaches_nothing_of_other_codes(tmp_path: Path) -> None:
    line = "[2026-08-25T09:09:02.859] [15.0] child {} ({}) exited with exit code {}.\n"
    told = story(tmp_path, line.format(0, 27350, 0) + line.format(0, 27351, 1))
    assert told is not None and told.first is not None and told.first.line == 2


def test_a_result_below_its_error_teaches_nothing_of_one_that_stands_alone(tmp_path: Path) -> None:
    meaning = "gooRemoteError: A call failed of itself\n"
    told = story(tmp_path, f"[rank4]: RuntimeError: GOO failed\n[rank4]: {meaning}[rank4]: leaving\n[rank5]: {meaning}")
    assert told is not None and told.first is not None
    assert [(e.text, [w.rank for w in e.who]) for e in (told.first, *told.then)] == [("RuntimeError: GOO failed", [4]), (meaning.strip(), [5])]


def test_an_error_that_is_given_to_the_model_ends_no_run(tmp_path: Path) -> None:
    said = "sqlite3.OperationalError: no such column: price"
    assert first(tmp_path, f"{said} -> returned to the model as an error message (turn 2)\n") is None
    told = story(tmp_path, f"{said}\n")
    assert told is not None and told.first is not None


def test_a_job_that_is_named_without_quotes_failed(tmp_path: Path) -> None:
    told = story(tmp_path, "Job rl-88 failed: DeadlineExceeded: Job was active longer than specified deadline\n")
    assert told is not None and told.first is not None


def test_a_process_that_exits_with_a_code_has_ended(tmp_path: Path) -> None:
    told = story(tmp_path, "2026-05-22 09:00:05 ERROR [rank3] process exits with exit code 1\n")
    assert told is not None and told.first is not None and told.first.kind == "death"
