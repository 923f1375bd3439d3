"""Who caught an error says so: before its traceback, behind it, or with what comes next. Beside each the failure that only looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_log_blocks_alone import BODY, LEFT, RAISED, role
from test_log_innocents import story


@pytest.mark.parametrize(
    "said",
    [
        "Sample 14 was left out: no such part",
        "2026-11-02 10:11:12 hooks.py:316 - callback failed (sid=s-12)",
        "[2026-11-02 10:11:12] hooks.py:316 - an exception of the hook (sid=s-12)",
    ],
)
def test_words_above_a_traceback_that_tell_of_it_say_that_it_was_caught(tmp_path: Path, said: str) -> None:
    assert role(tmp_path, f"{said}\n{RAISED}") == "noted"
    assert role(tmp_path, f"{said}\n{LEFT}") == "first"


@pytest.mark.parametrize("said", ["Sample 14 was read", "ValueError: no such part", "no such part", "2026-11-02 10:11:12 hooks.py:316 - batch 14"])
def test_other_words_above_it_do_not(tmp_path: Path, said: str) -> None:
    assert role(tmp_path, f"{said}\n{BODY}") == "first"


@pytest.mark.parametrize("said", ["Error in the judge: None", "Failed to read sample 14", "Exception while scoring sample 14"])
def test_words_behind_a_traceback_do_so_too(tmp_path: Path, said: str) -> None:
    assert role(tmp_path, f"{RAISED}{said}\n") == "noted"
    assert role(tmp_path, f"{LEFT}{said}\n") == "first"


@pytest.mark.parametrize("said", ["Error in the judge, exiting", "Error executing job with overrides: []", "of the text in the sample"])
def test_words_behind_it_of_an_end_or_of_the_message_do_not(tmp_path: Path, said: str) -> None:
    assert role(tmp_path, f"{BODY}{said}\n") == "first"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Error killing helper 3: Failed to look up actor with name 'policy-3'", "noted"),
        ("Failed to look up actor with name 'policy-3'", "first"),
        ("2026-11-02 10:11:12,100 ERROR pool.py:9 -- save failed: [Errno 28] No space left on device", "noted"),
        ("2026-11-02 10:11:12,100 ERROR pool.py:9 -- [Errno 28] No space left on device", "first"),
        ("2026-11-02 10:11:12,100 ERROR pool.py:9 -- save failed: [Errno 28] No space left on device, exiting", "first"),
        ("ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use", "first"),
        ("ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).", "first"),
        ('Error from server (Forbidden): error when creating "job.yaml": pods "t" is forbidden: exceeded quota: gpu', "first"),
    ],
)
def test_a_known_error_is_only_the_reason_of_what_was_tried(tmp_path: Path, line: str, expected: str) -> None:
    assert role(tmp_path, f"{line}\n") == expected


def test_one_of_several_attempts_ends_nothing_but_the_last(tmp_path: Path) -> None:
    line = "ERROR:2026-11-02 10:11:12,100:Failed to open port 41211 {}: [Errno 98] Address already in use\n"
    assert role(tmp_path, line.format("at try 0")) is None
    assert role(tmp_path, line.format("on attempt 2/3")) is None
    assert role(tmp_path, line.format("on attempt 3/3")) is not None
    assert role(tmp_path, line.format("on port 3")) is not None


def test_a_promise_to_try_again_counts_however_unexpected_the_end(tmp_path: Path) -> None:
    died = "(raylet) Task score failed. There are {} Error: The worker died unexpectedly while executing this task.\n"
    assert role(tmp_path, died.format("2 retries remaining, so the task will be retried.")) is None
    assert role(tmp_path, died.format("no retries remaining, so the task will not be retried.")) == "first"


def test_lines_of_a_program_that_names_itself_are_its_own_without_a_number(tmp_path: Path) -> None:
    killed = "(raylet) [2026-11-02 10:11:12,101 W 41 41] memory_monitor.cc:88: 1 Workers (tasks / actors) killed due to memory pressure (OOM)\n"
    again = "({}) Task score failed. There are 2 retries remaining, so the task will be retried.\n"
    assert role(tmp_path, killed) == "first"
    assert role(tmp_path, killed + again.format("raylet")) is None
    assert role(tmp_path, killed + again.format("raylet pid=52")) == "first"


def test_daemons_of_slurm_have_levels(tmp_path: Path) -> None:
    assert role(tmp_path, "slurmd: error: oom_score_adj not found\n") == "noted"
    assert role(tmp_path, "slurmctld: error: Prolog launch failure, JobId=812\n") == "first"
    told = story(tmp_path, "slurmd: fatal: _prlimit(RLIMIT_RSS, 81200 MB): Operation not permitted\n")
    assert told is not None and told.first is not None and told.first.who[0].label == "slurmd"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Could not load the own kernels: libfast.so: No such file or directory", "noted"),
        ("Error reading the list: /job/list: Permission denied", "noted"),
        ("libfast.so: No such file or directory", "noted"),
        ("Could not load the own kernels, exiting: libfast.so: No such file or directory", "first"),
    ],
)
def test_what_a_program_tried_is_only_noted(tmp_path: Path, line: str, expected: str) -> None:
    assert role(tmp_path, f"{line}\n") == expected


def test_one_try_to_reach_the_head_is_no_end_but_many_are(tmp_path: Path) -> None:
    line = "[2026-11-03 08:00:0{},101 E 881 881] rpc_client.h:153: Failed to connect to GCS at address 10.0.0.4:6379 within {} seconds.\n"
    assert role(tmp_path, line.format(1, 5)) == "noted"
    assert role(tmp_path, line.format(1, 5) + line.format(6, 5)) == "first"
    assert role(tmp_path, line.format(1, 60)) == "first"
    assert (
        role(tmp_path, line.format(1, 5) + line.format(6, 5) + "2026-11-03 08:00:07,001\tINFO worker.py:1852 -- Connected to Ray cluster.\n") is None
    )


@pytest.mark.parametrize("line", ["ray.exceptions.TaskCancelledError: Task: TaskID(81f) was cancelled", "asyncio.exceptions.CancelledError"])
def test_what_nobody_wanted_any_longer_did_not_fail(tmp_path: Path, line: str) -> None:
    assert role(tmp_path, f"{line}\n") == "told"
    assert role(tmp_path, f"RuntimeError: {line}\n") == "first"


def test_a_row_of_verdicts_tells_of_programs_that_were_tried(tmp_path: Path) -> None:
    assert role(tmp_path, "| 1    | RE: exited with code 139 |\n") is None
    assert role(tmp_path, "| 1    | exited with code 139 |\n") == "noted"


@pytest.mark.parametrize(("how", "expected"), [("exited with code -15", None), ("exited with code -11", "first")])
def test_a_helper_that_was_asked_to_end(tmp_path: Path, how: str, expected: str | None) -> None:
    assert role(tmp_path, f"[launcher] training finished\nProcess helper-3 {how}\n") == (expected and "noted")
    assert role(tmp_path, f"Process helper-3 {how}\n") == (expected or "told")


def test_a_server_of_python_goes_on_with_the_next_request(tmp_path: Path) -> None:
    words = "Exception occurred during processing of request from ('10.0.0.4', 5511)\n"
    assert role(tmp_path, words + RAISED) is None
    assert role(tmp_path, words.replace("occurred", "ended it") + LEFT) == "first"


def test_the_rank_that_torchrun_saw_end_first_is_named_for_its_error(tmp_path: Path) -> None:
    rows = ["=" * 60, "train.py FAILED", "-" * 60, "Failures:", "  <NO_OTHER_FAILURES>", "-" * 60, "Root Cause (first observed failure):", "[0]:"]
    fields = ["  time      : 2026-11-03_08:00:01", "  host      : n4", "  rank      : 3 (local_rank: 3)", "  exitcode  : -11 (pid: 8812)"]
    told = story(tmp_path, "\n".join(["torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", *rows, *fields]) + "\n")
    assert told is not None and told.first is not None and told.first.signature == "RRD6153"
    assert (told.first.who[0].rank, told.first.who[0].pid, told.first.who[0].node) == (3, 8812, "n4")


def test_the_level_of_a_record_of_ucx(tmp_path: Path) -> None:
    line = "[1762156801.101011] [n4:3312  :a]         ib_md.c:501  UCX  {} the handle of the memory was not opened: error 5\n"
    assert role(tmp_path, line.format("WARN")) is None
    assert role(tmp_path, line.format("ERROR")) == "noted"
    told = story(tmp_path, line.format("FATAL"))
    assert told is not None and told.first is not None and (told.first.who[0].node, told.first.who[0].pid) == ("n4", 3312)


def test_a_loop_of_asyncio_goes_on_behind_a_callback_that_failed(tmp_path: Path) -> None:
    words = "Exception in callback Link.close_(None)\nhandle: <Handle Link.close_>\n"
    assert role(tmp_path, words + RAISED) == "noted"
    assert role(tmp_path, words.replace("Exception in", "Called the") + BODY) == "first"


def test_an_exception_of_what_is_not_there_says_what_is_used_instead(tmp_path: Path) -> None:
    assert role(tmp_path, "ImportError: fast_norm is not installed -> using slow_norm for this model\n") is None
    assert role(tmp_path, "ImportError: fast_norm is not installed, pip install fast_norm\n") == "first"


def test_a_small_tool_that_complains_of_a_known_error_is_a_step_of_its_script(tmp_path: Path) -> None:
    stale = "cat: /srv/nfs/flag: Stale file handle\n"
    assert role(tmp_path, f"{stale}flag read after 1 more try\n") is None
    assert role(tmp_path, stale) == "first"
    assert role(tmp_path, stale + LEFT) == "first"


@pytest.mark.parametrize("said", ["exit code 124", "killed after 5 s, exit code 137", "stderr: Segmentation fault (core dumped)"])
def test_what_a_tool_of_an_agent_gave_back_is_no_end(tmp_path: Path, said: str) -> None:
    assert role(tmp_path, f"[tool bash] {said}\n") is None
    assert role(tmp_path, f"[trainer] {said}\n") == "first"


def test_what_stands_behind_rays_word_on_a_job_was_written_before_it(tmp_path: Path) -> None:
    ended = "Job entrypoint command failed with exit code -11, last available logs (truncated to 20,000 chars):\n"
    assert role(tmp_path, f"{ended}step 12 loss 0.2\nstep 13 loss 0.2\nfinished step 13\n") == "first"
    assert role(tmp_path, "helper failed with exit code 1\nstep 12 loss 0.2\nstep 13 loss 0.2\nfinished step 13\n") is None


def test_a_service_of_the_machine_that_the_kernel_ended_is_not_of_the_job(tmp_path: Path) -> None:
    line = "[ 8812.101011] Out of memory: Killed process 991 ({}) total-vm:912331kB, anon-rss:881233kB\n"
    assert role(tmp_path, line.format("snapd")) is None
    assert role(tmp_path, line.format("python3")) == "first"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Error deleting workers for role rollout: Server is gone already", None),
        ("Failed to stop helper 3: no such process", None),
        ("Error reading from workers of role rollout: Server is gone", "first"),
        ("Failed to stop helper 3: the server does not answer", "noted"),
    ],
)
def test_who_clears_away_what_is_gone_has_what_it_wanted(tmp_path: Path, said: str, expected: str | None) -> None:
    assert role(tmp_path, f"2026-11-05 07:00:01,101 ERROR pool.py:9 -- {said}\n") == expected


def test_all_lines_of_a_tools_complaint_are_passed_over_for_what_it_does_instead(tmp_path: Path) -> None:
    said = "ERROR: Could not find a version that satisfies the requirement fast-norm==9\nERROR: No matching distribution found for fast-norm==9\n"
    assert role(tmp_path, f"{said}installing fast-norm==2 instead\n") is None
    assert role(tmp_path, said) == "first"
    assert role(tmp_path, f"{said}installing failed\n") == "first"


def test_a_row_of_kubectl_names_its_pod(tmp_path: Path) -> None:
    told = story(tmp_path, "NAME        READY   STATUS      RESTARTS   AGE\ntrainer-0   0/1     Error       0          3h\n")
    assert told is not None and told.first is not None
    assert (told.first.signature, told.first.who[0].node) == ("RRD6295", "trainer-0")
    assert role(tmp_path, "trainer-0   0/1     Completed   0          3h\n") is None


@pytest.mark.parametrize("behind", ["attempt 2 in 4 s", "try 2 ok", "case 3: 0 points"])
def test_what_came_behind_a_caught_traceback_was_the_next_try_or_points(tmp_path: Path, behind: str) -> None:
    assert role(tmp_path, f"{RAISED}{behind}\n") is None
    assert role(tmp_path, f"{BODY}part 2 of the text\n") == "first"


def test_one_probe_that_failed_once_ends_no_pod(tmp_path: Path) -> None:
    probe = 'Warning  Unhealthy  9m{}  kubelet  Liveness probe failed: Get "http://10.0.0.4:8000/live": context deadline exceeded\n'
    assert role(tmp_path, probe.format("")) == "noted"
    assert role(tmp_path, probe.format(" (x1 over 9h)")) == "noted"
    assert role(tmp_path, probe.format(" (x3 over 1m)")) == "first"
    assert role(tmp_path, probe.format("") + probe.format("").replace("9m", "8m")) == "first"


def test_an_exception_that_its_program_ignores(tmp_path: Path) -> None:
    line = "[rank1]: OSError: [Errno 107] Transport endpoint is not connected{}\n"
    assert role(tmp_path, line.format(" (ignored: the store was closed at the end)")) is None
    assert role(tmp_path, line.format("")) == "first"


def test_all_steps_done_is_an_end_of_the_work(tmp_path: Path) -> None:
    lost = (
        "Exception in thread Thread-9 (watch):\nTraceback (most recent call last):\n"
        '  File "/usr/lib/python3.11/threading.py", line 1045, in _bootstrap_inner\n    self.run()\n'
        '  File "/srv/mon.py", line 9, in watch\n    self.sock.recv(1)\nConnectionResetError: [Errno 104] Connection reset by peer\n'
    )
    assert role(tmp_path, f"train: done, 900 of 900 steps\n{lost}") is None
    assert role(tmp_path, f"train: done, 90 of 900 steps\n{lost}") == "first"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- fixed: the loader died with a segmentation fault, exit code 139", "noted"),
        ("* adds a limit where a worker died with exit code 1", "noted"),
    ],
)
def test_a_list_of_changes_tells_of_old_failures(tmp_path: Path, line: str, expected: str) -> None:
    assert role(tmp_path, f"{line}\n") is None
    assert role(tmp_path, f"{line[2:]}\n") == expected


@pytest.mark.parametrize(
    ("line", "pid"),
    [
        ("[controller] no answer of rollout-2 (pid 4412), the process is dead", 4412),
        ("Replica pool-0 exited with a non-zero status of 134.", None),
        ("(rank3, pid=4412, ip=10.0.0.9) ERROR: Job 1 failed with return code list: [0, 0, 0, 137]", 4412),
        ('earlyoom[81]: sending SIGKILL to process 4412 uid 0 "python3": oom_score 912, VmRSS 81233 MiB', 4412),
        ("slurmstepd: error: StepId=8812.0 exceeded memory limit (912331 > 812331), being killed", None),
    ],
)
def test_more_words_of_an_end(tmp_path: Path, line: str, pid: int | None) -> None:
    told = story(tmp_path, f"{line}\n")
    assert told is not None and told.first is not None and told.first.who[0].pid == pid


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2026-11-07 05:00:01,101 - app - WARNING - test execution failed: [Errno 28] No space left on device: '/srv/x'", "noted"),
        ("2026-11-07 05:00:01,101 - app - ERROR - Failed to sum up the file: [Errno 28] No space left on device: '/srv/x'", "noted"),
        ("2026-11-07 05:00:01,101 - app - ERROR - Error closing the client: CUDA out of memory. Tried to allocate 2.00 GiB", "noted"),
        ("2026-11-07 05:00:01,101 - app - ERROR - CUDA out of memory. Tried to allocate 2.00 GiB", "first"),
        ("2026-11-07 05:00:01,101 - app - ERROR - RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "first"),
        ("2026-11-07 05:00:01,101 - app - ERROR - worker failed, exiting: CUDA out of memory. Tried to allocate 2.00 GiB", "first"),
        ("Nov 21 03:04:05 n12 kernel: NVRM: Xid (PCI:0000:1b:00): 79, pid=4412, name=python3, GPU has fallen off the bus.", "first"),
        ("Failed to initialize NVML: Driver/library version mismatch", "first"),
        ("srun: error: Unable to allocate resources: Requested node configuration is not available", "first"),
        ('docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].', "first"),
        ("[2026-07-23 10:05:49,679 W 60 60] rpc_client.h:151: Failed to connect to GCS at address :6379 within 5 seconds.", "first"),
    ],
)
def test_a_known_error_behind_words_of_what_failed_is_their_reason(tmp_path: Path, line: str, expected: str) -> None:
    assert role(tmp_path, f"{line}\n") == expected


def test_a_lost_device_is_no_reason_that_was_handled(tmp_path: Path) -> None:
    line = "E0302 09:00:36.549001  812 allocator.cc:414] cudaFreeAsync failed to free 0x7f12: {}\n"
    assert role(tmp_path, line.format("CUDA_ERROR_CONTAINED: Invalid access of peer GPU memory over nvlink or a hardware error")) == "first"
    assert role(tmp_path, line.format("CUDA_ERROR_OUT_OF_MEMORY")) == "noted"


def test_a_child_of_a_rank_that_a_launcher_marks_is_named_by_its_parent(tmp_path: Path) -> None:
    mark = "[1,0]<stderr>:"
    raised = "Traceback (most recent call last):", '  File "/job/train.py", line 9, in <module>', "    next(rows)"
    killed = "RuntimeError: DataLoader worker (pid 372) is killed by signal: Bus error."
    short = "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm)."
    told = story(tmp_path, "".join(f"{mark}{line}\n" for line in (short, *raised, killed)))
    assert told is not None and told.first is not None and [w.pid for w in told.first.who] == [372]


def test_lines_of_hccl_that_trace_a_call_are_none_of_their_own(tmp_path: Path) -> None:
    line = "[ERROR] HCCL(2717,python3):2026-07-23-03:47:57.070.{} [hccl_socket.cc:100] [2717]{}\n"
    failed = line.format("463", "[Listen] socket type[1], listen on ip[10.0.0.2] and specific port[16666] fail.")
    told = story(tmp_path, failed + line.format("466", "[ServerInit]call trace: hcclRet -> 19"))
    assert told is not None and told.first is not None and "specific port" in told.first.text and told.then == ()


def test_a_shells_word_on_its_child_tells_no_reason(tmp_path: Path) -> None:
    raised = "OverflowError: out of range integral type conversion attempted"
    dump = f"[2026-03-02 10:00:31] DetokenizerManager hit an exception: {RAISED.replace('ValueError: no such part', raised)}Killed\n"
    told = story(tmp_path, dump)
    assert told is not None and told.first is not None and told.first.text == raised
    assert role(tmp_path, "Killed\n") == "first"


def test_what_a_watchdog_and_an_engine_say_before_they_write_down_what_they_hold(tmp_path: Path) -> None:
    assert (
        role(tmp_path, "[rank3]:[E201 10:30:31.431 ProcessGroupNCCL.cpp:1575] [PG ID 0 Rank 3] ProcessGroupNCCL preparing to dump debug info.\n")
        is None
    )
    assert role(tmp_path, "(EngineCore_DP0 pid=88) ERROR 02-01 10:05:31 [dump_input.py:69] Dumping input data for V1 LLM engine\n") is None


def test_a_store_that_was_not_reached_is_excused_by_nothing_but_its_connection(tmp_path: Path) -> None:
    failed = "[E1121 10:00:00.000 socket.cpp:1019] [c10d] The client socket has timed out after 60000ms while trying to connect to (head, 29500).\n"
    again = "[W1121 10:00:00.100 TCPStore.cpp:343] [c10d] TCP client failed to connect/validate to host head:29500 - retrying (try=0)\n"
    assert role(tmp_path, failed + again) == "first"
    assert role(tmp_path, failed + again + "[I1121 10:00:02.100 TCPStore.cpp:348] [c10d] TCP client connected to host head:29500\n") is None


def test_what_comes_behind_a_known_error_of_one_writer_comes_of_it(tmp_path: Path) -> None:
    head = "(APIServer pid=511) ERROR 02-01 10:00:31 [core.py:600] "
    died = f"{head}Engine core proc EngineCore_DP3 died unexpectedly, shutting down client.\n"
    told = story(tmp_path, f"{died}{head}AsyncLLM output_handler failed.\n")
    assert told is not None and told.first is not None and "EngineCore_DP3" in told.first.text
    told = story(tmp_path, f"{head}AsyncLLM output_handler failed.\n{died}")
    assert told is not None and told.first is not None and "output_handler" in told.first.text


def test_what_was_caught_and_handed_on_is_no_word_of_going_on(tmp_path: Path) -> None:
    line = "[2026-02-01 10:00:31 TP2] Failed to update parameter online: {}: Timed out after 300s waiting for the broadcast.\n"
    assert role(tmp_path, line.format("Caught exception")) == "first"
