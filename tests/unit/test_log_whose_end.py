"""Whose end it was, and whether there was one: marks of ranks, engines and machines, progress bars, logs in prompts."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_log_blocks_alone import role
from test_log_innocents import story

RAISED = "[rank0]: RuntimeError: Multiple errors: [Exception('Server 1 failed: 500')]\n"
BAR = "Train:   7%|7         | {}/120 [11:30:34<161:08:04, 5179.32s/it]\n"


def test_a_bar_that_is_drawn_once_more_at_the_end_excuses_nothing(tmp_path: Path) -> None:
    assert role(tmp_path, RAISED + BAR.format(8)) is not None
    assert role(tmp_path, BAR.format(8) + RAISED + BAR.format(8)) is not None
    assert role(tmp_path, BAR.format(7) + RAISED + BAR.format(8)) is None
    assert role(tmp_path, RAISED + BAR.format(8) + BAR.format(9)) is None


def test_lines_without_a_mark_are_not_those_of_a_rank_whose_error_has_one(tmp_path: Path) -> None:
    assert role(tmp_path, f"{RAISED}Saved the table of prices\n") == "first"
    assert role(tmp_path, f"{RAISED.removeprefix('[rank0]: ')}Saved the table of prices\n") == "noted"


@pytest.mark.parametrize(("program", "expected"), [("Worker_TP2", "first"), ("EngineCore_DP0", "first"), ("Worker", "first"), ("APIServer", "noted")])
def test_what_a_process_of_an_engine_raises_ends_the_engine_or_its_call(tmp_path: Path, program: str, expected: str) -> None:
    said = f"({program} pid=99) ERROR 11-21 03:20:50 [parts.py:671] KeyError: 'lm_head'\n"
    assert role(tmp_path, said) == expected


def test_a_pasted_log_with_marks_of_its_own_is_a_part_of_the_prompt(tmp_path: Path) -> None:
    pasted = "user: Here is my log:\n[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert role(tmp_path, f"{pasted}assistant: Use a smaller batch.\n") is None
    assert role(tmp_path, pasted) == "first"
    marked = "".join(f"[rank{i % 2}]: {line}\n" for i, line in enumerate(["user: What now?", "KeyError: 'a'", "assistant: Wait."]))
    assert role(tmp_path, marked) == "first"


def test_slurm_names_the_node_of_what_its_helper_tells(tmp_path: Path) -> None:
    helper = "slurmstepd: error: execve(): /opt/env/bin/python: No such file or directory\n"
    told = story(tmp_path, f"{helper}srun: error: gpu003: task 0: Exited with exit code 2\n")
    assert told is not None and told.first is not None and [w.node for w in told.first.who] == ["gpu003"]
    two = "".join(f"srun: error: gpu00{n}: task {n}: Exited with exit code 2\n" for n in (3, 4))
    told = story(tmp_path, helper + two)
    assert told is not None and told.first is not None and "gpu003" not in [w.node for w in told.first.who]


def test_a_node_that_ray_calls_by_its_id_is_told_with_its_address(tmp_path: Path) -> None:
    """The line of the failed check has the id alone, that of the removal both; the store that writes them has not failed."""
    stamp = "[2025-11-08 10:41:10,120 W 210 230] (gcs_server)"
    failed = f"{stamp} gcs_health_check_manager.cc:149: Health check failed for node {{}}, remaining checks 0, status 4"
    removed = (
        f"{stamp} gcs_node_manager.cc:420: Removing node, node id = {{}}, node name = {{}}, "
        "death reason = UNEXPECTED_TERMINATION, death message = health check failed due to missing too many heartbeats"
    )
    node = "8c2fa0d1be77a2c1"
    told = story(tmp_path, "\n".join([failed.format(node), removed.format(node, "10.9.0.7"), ""]))
    assert told is not None and told.first is not None and told.first.who[0].label == f"node {node} (10.9.0.7)"
    assert told.summary.startswith(f"first failure: node {node} (10.9.0.7) at 2025-11-08")
    for other in ("", removed.format("77aa", "10.9.0.8"), removed.format(node, "gpu7")):
        told = story(tmp_path, f"{failed.format(node)}\n{other}\n")
        assert told is not None and told.first is not None and told.first.who[0].label == f"node {node}"


def test_a_program_of_a_machine_that_crashed_is_noted_beside_other_words_of_an_end(tmp_path: Path) -> None:
    crash = "Nov 20 03:12:44 n-8 kernel: {}[8812]: segfault at 0 ip 0000 sp 0000 error 4 in x[55d]\n"
    unit = "Nov 20 03:12:44 n-8 systemd[1]: snapd.service: Main process exited, code=killed, status=9/KILL\n"
    assert role(tmp_path, crash.format("chrome") + unit) == "noted"
    assert role(tmp_path, crash.format("python3") + unit) == "first"


@pytest.mark.parametrize(
    "line",
    [
        "[2026-11-20 09:14:22] Scheduler or DataParallelController 812 terminated with -9",
        "srun: fatal: Could not establish a configuration source",
        "[gpu07:44121:0:44121] ucp_mm.c:148  Fatal: UCX assertion `memh != NULL' failed",
        "[10:12:44] /project/cpp/matcher.cc:410: Fatal error: token id 151999 is out of range",
        "20261120-09:14:22.871 LocalLauncher ERROR: Job llm_server:0 failed with status FAILED. Stopping all jobs.",
        "[2026-05-21 16:07:41 TP6] Failed to update parameter online: start out of range (expected to be in range of [0, 128], but got 256).",
    ],
)
def test_more_forms_of_an_end(tmp_path: Path, line: str) -> None:
    assert role(tmp_path, f"{line}\n") == "first"


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-20 09:14:22,871\tERR cli.py:68 -- -------------------------------",
        "WARNING: worker 3 terminated with 0",
        "2026-11-20 09:14:22,871 ERROR pool.py:68 -- connection lost (expected during the move)",
    ],
)
def test_lines_that_tell_nothing(tmp_path: Path, line: str) -> None:
    assert role(tmp_path, f"{line}\n") is None


def test_tasks_that_slurm_ended_for_a_reason_did_not_fail_whichever_line_came_first(tmp_path: Path) -> None:
    tasks = "srun: error: gpu12: task 8: {}\nsrun: error: gpu11: tasks 0-7: Killed\n"
    why = "slurmstepd: error: *** STEP 494583.0 ON gpu11 CANCELLED AT 2026-04-20T09:09:37 DUE TO TIME LIMIT ***\n"
    for text in (tasks.format("Terminated") + why, why + tasks.format("Terminated")):
        told = story(tmp_path, text)
        assert told is not None and told.first is not None and "TIME LIMIT" in told.first.text
    told = story(tmp_path, tasks.format("Exited with exit code 1") + why)
    assert told is not None and told.first is not None and "task 8" in told.first.text


def test_an_object_of_kubernetes_that_may_be_anybodys_is_not_first_beside_another_failure(tmp_path: Path) -> None:
    events = (
        "12m   Warning   BackOff      pod/notebook-amy-0    Back-off restarting failed container eval in pod notebook-amy-0_rl\n"
        "9m    Warning   OOMKilling   node/gpu-04           Memory cgroup out of memory: Killed process 88121 (python3)\n"
        "8m    Normal    Started      pod/grpo-trainer-0    Started container trainer\n"
    )
    told = story(tmp_path, events)
    assert told is not None and told.first is not None and "88121" in told.first.text


def test_a_message_that_opens_a_list_goes_on_below(tmp_path: Path) -> None:
    assert role(tmp_path, "pool.errors.EnvError: The string that you gave ('CartPole-v9') is:\na) Not a supported environment.\n") == "first"


def test_a_number_of_a_process_and_a_level_behind_a_stamp(tmp_path: Path) -> None:
    line = "2026-03-02 11:20:31.000811:  88121  {} ||NEURON_CC_WRAPPER||: Compilation failed for /w/m.pb\n"
    told = story(tmp_path, line.format("ERROR"))
    assert told is not None and told.first is not None and told.first.who[0].pid == 88121
    assert role(tmp_path, line.format("INFO").replace("failed", "took 3 s, none failed")) is None


def test_the_answer_of_a_sandbox_without_blanks_is_a_printed_value(tmp_path: Path) -> None:
    raised = 'Traceback (most recent call last):\\n  File \\"/tmp/a.py\\", line 1\\nSyntaxError: invalid syntax\\n'
    assert role(tmp_path, '{"status":"Failed","message":"","run_result":{"return_code":1,"stdout":"","stderr":"' + raised + '"}}\n') is None


@pytest.mark.parametrize(
    "line",
    [
        "[watchdog] no heartbeat from rollout-3 for 600 s, killing the job",
        "[guard] loss is nan at step 811 on rank 4, aborting the run",
        "Server: timeout after 10s. Exiting to release the lock.",
        "E 11-20 09:14:22 controller.py:471] Job 12 (grpo) failed with exit code 137. See logs: sky jobs logs 12",
        "ERROR 2026-11-20T09:14:22Z service The replica workerpool0-0 exited with a non-zero status of 1.",
        "PM2 | App [grpo:0] exited with code [1] via signal [SIGINT]",
        "2026-11-20 09:14:22,871 - dist - ERROR - Rank 2: All barrier attempts failed: Connection reset by peer",
        "rank 0: exit 0\nrank 2: exit 139",
        "timeout: the monitored command dumped core",
        "E1120 09:14:22.871102       1 health.go:180] XidCriticalError: Xid=48 on Device=GPU-8f2c; marking device as unhealthy.",
        "Error occurred: User program failed with RuntimeError: NCCL communicator was aborted on rank 3.",
    ],
)
def test_who_ends_a_run_says_so_in_plain_words(tmp_path: Path, line: str) -> None:
    assert role(tmp_path, f"{line}\n") == "first"


@pytest.mark.parametrize(
    "line",
    [
        "[user] I get this: RuntimeError: CUDA out of memory",
        "sample[0].prompt = 'Why does my pod show OOMKilled?'",
        "aborting the request: its client left",
        "rank 0: exit 0\nrank 1: exit 0",
        "2026-11-20 09:14:22,871 INFO killing the job on purpose, as asked",
        "[Rank 0] DeepEP test skipped\n[Rank 0] Error: CUDA error: invalid resource handle",
        "checkpoint not found, exiting early mode",
    ],
)
def test_what_only_sounds_like_it(tmp_path: Path, line: str) -> None:
    assert role(tmp_path, f"{line}\n") is None


def test_why_a_program_ended_itself_stands_in_its_traceback(tmp_path: Path) -> None:
    said = "Rollout failed, aborting the run\nTraceback (most recent call last):\n"
    told = story(tmp_path, said + '  File "/job/run.py", line 9, in <module>\n    main()\nValueError: no rollout is left\n')
    assert told is not None and told.first is not None and told.first.text == "ValueError: no rollout is left"
