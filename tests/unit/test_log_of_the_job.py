"""What fails in the lines of a log, and is no failure of the job: of helpers, of nodes and jobs beside it, of a search that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_log_blocks_alone import BODY, role
from test_log_innocents import first, story

DOWN = "Oct 01 10:00:01 ctl slurmctld[71]: error: Nodes n91 not responding, setting DOWN\n"


def test_the_controller_writes_of_all_nodes(tmp_path: Path) -> None:
    assert role(tmp_path, DOWN) == "noted"
    assert role(tmp_path, f"{DOWN}Oct 01 10:00:01 ctl slurmctld[71]: requeue job JobId=812 due to failure of node n91\n") == "first"
    assert role(tmp_path, f"{DOWN}Oct 01 10:00:01 ctl slurmctld[71]: requeue job JobId=812 due to failure of node n7\n") == "noted"
    assert role(tmp_path, f"{DOWN}srun: error: n91: task 3: Killed\n") == "first"


def test_of_a_list_of_jobs_the_last_one_is_the_job(tmp_path: Path) -> None:
    head = "JobID State ExitCode\n"
    assert role(tmp_path, f"{head}81 NODE_FAIL 0:0\n82 RUNNING 0:0\n") == "noted"
    assert role(tmp_path, f"{head}81 COMPLETED 0:0\n82 NODE_FAIL 0:0\n") == "first"
    assert role(tmp_path, f"{head}82 NODE_FAIL 0:0\n82.batch CANCELLED 0:15\n") == "first"


@pytest.mark.parametrize(
    "text",
    [
        'time="2026-10-01T10:00:00Z" level=fatal msg="Failed to watch metrics: an unrecoverable error"\n',
        'time="2026-10-01T10:00:00Z" level=fatal msg="Error connecting to gpu-hostengine"\n',
        'time="2026-10-01T10:00:00Z" level=fatal msg="no such file"\ntime="2026-10-01T10:00:01Z" level=info msg="starting gpu-exporter"\n',
    ],
)
def test_a_helper_that_ends_ends_no_run(tmp_path: Path, text: str) -> None:
    told = story(tmp_path, text)
    assert told is None or (told.first is None and not told.noted)
    grave = text.replace("metrics", "weights").replace("-exporter", "-trainer").replace("-hostengine", "-engine")
    assert role(tmp_path, grave.partition("\n")[0] + "\n") == "first"


def test_a_search_that_found_what_fits_lived(tmp_path: Path) -> None:
    tried = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB.\n"
    assert first(tmp_path, f"{tried}Found executable batch size: 8\n") is None
    assert first(tmp_path, f"{tried}Found executable: /usr/bin/python\n") is not None


def test_an_error_at_the_end_of_counted_work_is_no_end_of_it_by_its_place(tmp_path: Path) -> None:
    work = "".join(f"2026-03-02 08:{m}:00,000 INFO trainer.py:9 -- step {m} loss 0.2\n" for m in (10, 11, 12))
    assert role(tmp_path, f"{work}2026-03-02 08:13:00,000 ERROR judge.py:4 -- the judge gave no number\n") == "noted"
    failed = 'Step 13 failed: Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\nKeyError: 7\n'
    assert role(tmp_path, work + failed) == "first"


def test_nccl_that_connects_next_has_survived_its_warning(tmp_path: Path) -> None:
    warns = "n1:62:62 [0] misc/cudawrap.cc:179 NCCL WARN Failed to find CUDA library libcuda.so (NCCL_CUDA_PATH='') :\n"
    assert first(tmp_path, f"{warns}n1:62:62 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.2<0>\n") is None
    assert first(tmp_path, f"{warns}n1:62:62 [0] NCCL INFO init.cc:88 -> 2\n") is not None


def test_an_engine_whose_results_are_printed_had_nothing_more_to_do(tmp_path: Path) -> None:
    died = "ERROR 01-07 20:00:59 [core_client.py:564] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.\n"
    assert first(tmp_path, f"Prompt: 'Hello, my name is', Generated text: ' Shin'\n{died}") is None
    assert role(tmp_path, f"Processed prompts: 100%|#| 4/4 [00:00<00:00, 10.58it/s]\n{died}") == "first"


def test_what_a_program_will_do_instead_is_doubt(tmp_path: Path) -> None:
    failed = "E1102 08:00:12.100000 8812 thd.cc:155] pthread_create failed: Resource temporarily unavailable"
    assert role(tmp_path, f"{failed}; will run inline\n") == "noted"
    assert role(tmp_path, f"{failed}\n") == "first"


def test_a_rank_in_a_list_of_one_is_named(tmp_path: Path) -> None:
    told = story(tmp_path, "(EngineCore pid=901) ERROR 07-18 10:00:00 [ray_executor.py:410] Worker rank=[3] died unexpectedly, shutting down.\n")
    assert told is not None and told.first is not None and [w.rank for w in told.first.who] == [3]


def test_an_exception_that_names_what_is_used_instead_is_survived(tmp_path: Path) -> None:
    lacks = "ImportError: cannot import name 'unpad_input' from 'flash_attn.bert_padding'"
    assert role(tmp_path, f"{lacks}, using the native implementation\n") != "first"
    assert role(tmp_path, f"{lacks}\n") == "first"


def test_a_list_of_what_there_is_belongs_to_the_message(tmp_path: Path) -> None:
    missing = "In 'ppo_trainer': Could not find 'actor/dp'\n\nAvailable options in 'actor':\n\tdp_actor\nConfig search path:\n\tprovider=hydra\n"
    assert role(tmp_path, missing) == "first"


def test_a_program_of_a_desktop_is_none_of_the_job(tmp_path: Path) -> None:
    ended = "systemd-oomd[81]: Killed /user.slice/user@7.service/app.slice/{}.scope due to memory pressure for /user.slice being 61% > 50%\n"
    assert role(tmp_path, ended.format("editor")) is None
    assert role(tmp_path, ended.format("vte-spawn-8")) == "first"


def test_an_actor_that_leaves_as_it_was_told_did_not_fail(tmp_path: Path) -> None:
    told = story(tmp_path, "(pid=901) ray.exceptions.AsyncioActorExit\n")
    assert told is not None and told.first is None


@pytest.mark.parametrize(
    "words",
    ["Error terminating the nodes", "Failed to kill the unrecoverable replica", "Error shutting down worker group", "Could not abort group 3"],
)
def test_an_end_that_fails_is_no_end(tmp_path: Path, words: str) -> None:
    record = "2026-03-02 10:00:01,100\tERROR parts.py:7 -- {}\n"
    assert role(tmp_path, record.format(words)) != "first"
    assert role(tmp_path, record.format(f"{words}, giving up")) == "first"
    assert role(tmp_path, record.format("Error in the group, terminating")) == "first"


def test_what_stays_alive_has_not_ended(tmp_path: Path) -> None:
    record = "2026-03-02 10:00:01,100\tERROR agent.py:7 -- Failed to start the worker: no port{}\n"
    assert role(tmp_path, record.format(". The agent will stay alive without it")) is None
    assert role(tmp_path, record.format("")) == "first"


def test_what_was_aborted_before_and_what_is_raised_in_cleanup_end_nothing(tmp_path: Path) -> None:
    record = "2026-03-02 10:00:01,100 ERROR parts.py:7 -- {}\n"
    assert role(tmp_path, record.format("failed to requeue aborted group")) != "first"
    assert role(tmp_path, record.format("failed to store, aborted")) == "first"
    assert role(tmp_path, record.format("Unhandled exception in cleanup callback: 7")) != "first"
    assert role(tmp_path, record.format("Unhandled exception in the loop: 7")) == "first"


def test_a_bare_exception_behind_which_anybody_goes_on_is_noted(tmp_path: Path) -> None:
    raised = "(WorkerDict pid=7) OSError: [Errno 39] Directory not empty: '/ckpt/40'\n"
    assert role(tmp_path, f"{raised}(TaskRunner pid=71) 2026-03-02 10:00:01,100 INFO parts.py:7 -- saved /ckpt/60\n") == "noted"
    assert role(tmp_path, f"{raised}(TaskRunner pid=71) 2026-03-02 10:00:01,100 ERROR parts.py:7 -- no answer\n") == "first"
    assert role(tmp_path, raised) == "first"


def test_what_is_raised_where_something_was_to_be_ended(tmp_path: Path) -> None:
    raised = "(AgentLoop pid=7) RuntimeError: Attempted to exit cancel scope in a different task than it was entered in\n"
    assert role(tmp_path, f"(AgentLoop pid=7) an error occurred during closing of the generator\n{raised}") is None
    assert role(tmp_path, f"(AgentLoop pid=7) an error occurred during the turn\n{raised}") == "first"


def test_a_trial_that_is_restored_goes_on(tmp_path: Path) -> None:
    failed = "2026-03-02 10:00:01,100\tERROR tune.py:7 -- Trial task failed for trial P_1\n" + BODY
    after = "2026-03-02 10:00:02,100\tINFO tune.py:9 -- Trial P_1: 1 failure, {} restores left\n"
    assert role(tmp_path, failed + after.format(2)) is None
    assert role(tmp_path, failed + after.format(0)) == "first"


def test_a_helper_of_a_pod_is_no_part_of_the_run(tmp_path: Path) -> None:
    probe = "Warning  Unhealthy  41s (x2 over 51s)  kubelet  Liveness probe failed: HTTP probe failed with statuscode: 503 (container {})\n"
    assert role(tmp_path, probe.format("log-sidecar")) == "noted"
    assert role(tmp_path, probe.format("trainer")) == "first"


def test_mpirun_names_who_ended_first(tmp_path: Path) -> None:
    text = "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated.\n\n"
    text += "  Process name: [[41,1],5]\n"
    told = story(tmp_path, f"{text}  Exit code:    1\n")
    assert told is not None and told.first is not None and [w.rank for w in told.first.who] == [5]


def test_a_traceback_in_the_report_of_a_rank_is_of_that_rank(tmp_path: Path) -> None:
    fields = "Root Cause (first observed failure):\n[0]:\n  host      : gpu-2\n  rank      : 5 (local_rank: 5)\n"
    fields += "  exitcode  : 1 (pid: 1315)\n  error_file: /tmp/e/5/error.json\n"
    told = story(
        tmp_path, f'{fields}  traceback : Traceback (most recent call last):\n    File "/job/a.py", line 8, in main\n      f()\n  ValueError: x\n'
    )
    assert told is not None and told.first is not None and [(w.rank, w.pid) for w in told.first.who] == [(5, 1315)]


def test_a_helper_tells_how_its_own_tools_end(tmp_path: Path) -> None:
    said = '{}: level=error msg="failed to run nvidia-smi" err="exit status 9"\n'
    assert role(tmp_path, said.format("nvidia_gpu_exporter")) is None
    assert role(tmp_path, said.format("trainer")) == "first"


def test_a_fatal_record_behind_which_its_writer_goes_on_ended_one_session(tmp_path: Path) -> None:
    fatal = '2026-11-07 08:00:00.100 FATAL db.c:8 -- authentication failed for user "grafana"\n'
    assert role(tmp_path, fatal) == "first"
    assert role(tmp_path, f"{fatal}2026-11-07 08:00:01.100 INFO db.c:9 -- 41 buffers stored\n") == "noted"
    assert role(tmp_path, f"{fatal}the user is not known\nsee the manual\n") == "first"


def test_fields_of_a_helper_or_of_an_older_job_are_none_of_the_job(tmp_path: Path) -> None:
    pod = "Name:         {}\nStatus:       Failed\nContainers:\n  main:\n    State:          Terminated\n      Reason:       OOMKilled\n"
    assert role(tmp_path, pod.format("rl-worker-3")) == "first"
    assert role(tmp_path, pod.format("rl-worker-3").replace("main:", "log-sidecar:")) == "noted"
    shown = "JobId={} JobName=grpo\n   JobState={} Reason=None\n"
    assert role(tmp_path, shown.format(81, "NODE_FAIL") + shown.format(82, "RUNNING")) == "noted"
    assert role(tmp_path, shown.format(81, "COMPLETED") + shown.format(82, "NODE_FAIL")) == "first"


def test_words_of_an_error_that_are_quoted_corrected_or_of_a_form_are_none(tmp_path: Path) -> None:
    assert role(tmp_path, "[note] on Monday we saw `NCCL WARN Call to ibv_create_cq failed`, fixed by ulimit -l\n") is None
    disk = "[ 8812.2] blk_update_request: I/O error, dev nvme0n1, sector 8 op 0x0:(READ)\n"
    assert role(tmp_path, disk) == "first"
    assert role(tmp_path, f"{disk}[ 8812.3] md/raid1:md0: read error corrected (8 sectors at 8 on nvme0n1p2)\n") is None
    form = 'E1108 08:00:00.100000    1812 manager.go:562] "Unhandled Error"{}no certificate was signed in time"\n'
    assert role(tmp_path, form.format(' err="')) == "noted"
