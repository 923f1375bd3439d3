"""Which form of a failure that stands alone says that something of the run ended: each kind beside the same words in another form."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_log_blocks_alone import role
from test_log_innocents import story


@pytest.mark.parametrize(
    ("ended", "told_of"),
    [
        ("trainer-1 exited with code 137", "Question 4: my trainer exited with code 137"),
        ("worker 4412 was killed by signal 9", "How the demo ends: worker 4412 was killed by signal 9"),
        ("run.sh: line 44: 81234 Killed    python train.py", "weather agent says line 44: 81234 Killed    python train.py"),
        (
            "[launcher] rank 5 (pid 812) exited with code 1, stopping the others",
            "[helpdesk bot] rank 5 (pid 812) exited with code 1, stopping the others",
        ),
        ("2026-05-04 08:00:01 ERROR supervisor: process 41 died with signal 11", 'rl_exits_total{reason="exit code 137"} 3'),
        ("kernel: Out of memory: Killed process 9 (python3) total-vm:1kB", "kernel: Out of memory: Killed process 9 (backupd) total-vm:1kB"),
    ],
)
def test_a_death_is_told_by_a_line_that_begins_with_what_ended(tmp_path: Path, ended: str, told_of: str) -> None:
    assert role(tmp_path, f"{ended}\n") == "first"
    assert role(tmp_path, f"{told_of}\n") == "noted"


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ("OSError: [Errno 28] No space left on device", "The old shard cannot go to its place now: [Errno 28] No space left on device"),
        ("cp: error writing '/job/a.pt': No space left on device", "Writing the picture of the step stopped: [Errno 28] No space left on device"),
        ("CUDA out of memory. Tried to allocate 2.00 GiB.", "Warm-up with batch sixty ends early: CUDA out of memory. Tried to allocate 2.00 GiB."),
        (
            "The actor died unexpectedly before finishing this task.",
            "Late answer of the judge: The actor died unexpectedly before finishing this task.",
        ),
    ],
)
def test_a_known_error_counts_in_its_own_line_and_not_as_a_reason(tmp_path: Path, own: str, sentence: str) -> None:
    assert role(tmp_path, f"{own}\n") == "first"
    assert role(tmp_path, f"{sentence}\n") == "noted"


@pytest.mark.parametrize(
    ("starts_nothing", "complains"),
    [
        ("run.sh: line 3: torchrun: command not found", "bash: figlet: command not found"),
        ("python: can't open file '/job/train.py': [Errno 2] No such file or directory", "tree: /job/old: No such file or directory"),
    ],
)
def test_a_tool_that_complains_ends_nothing_but_what_was_to_start_and_does_not(tmp_path: Path, starts_nothing: str, complains: str) -> None:
    assert role(tmp_path, f"{starts_nothing}\n") == "first"
    assert role(tmp_path, f"{complains}\n") == "noted"


def test_what_a_record_says_will_happen_has_not_ended_yet(tmp_path: Path) -> None:
    line = "[2026-05-02 10:11:12,101 E 44 45] core.cc:347: The worker was used after its shutdown{}\n"
    assert role(tmp_path, line.format(". The process will exit")) == "noted"
    assert role(tmp_path, line.format(", the process exits")) == "first"


def test_a_prompt_below_an_error_is_no_more_of_its_message(tmp_path: Path) -> None:
    refused = "CommandNotFoundError: the shell was not set up for this\n"
    assert role(tmp_path, f"{refused}(rl) starting trainer\n") == "noted"
    assert role(tmp_path, f"{refused}(see the manual of the shell)\n") == "first"


def test_that_nobody_starts_it_again_is_no_way_to_go_on(tmp_path: Path) -> None:
    assert role(tmp_path, "[supervisor] rollout-3 exited with code 139, restarting is off\n") is not None
    assert role(tmp_path, "[supervisor] exporter-3 exited with code 139, metrics are off\n") is None


@pytest.mark.parametrize("call", ["recv", "write", "recv from 10.0.0.2<41>"])
def test_a_call_of_nccl_that_failed_is_known_with_and_without_its_peer(tmp_path: Path, call: str) -> None:
    assert role(tmp_path, f"n1:7:9 [1] include/socket.h:398 NCCL WARN Call to {call} failed : Connection reset by peer\n") == "first"


def test_what_a_client_no_longer_wanted_gave_nothing_up(tmp_path: Path) -> None:
    line = "ERROR 05-04 08:00:01 [llm.py:88] Answer 81f0a was aborted{}\n"
    assert role(tmp_path, line.format(" by the client")) == "noted"
    assert role(tmp_path, line.format(" for want of memory")) == "first"


@pytest.mark.parametrize(
    "line", ['{"ts":"2026-09-14T10:01:44Z","level":"fatal","msg":"lost the lease"}', 'time="2026-09-14" level=fatal msg="lost the lease"']
)
def test_a_record_at_level_fatal_is_told_whatever_its_words(tmp_path: Path, line: str) -> None:
    assert role(tmp_path, f"{line}\n") == "first"
    assert role(tmp_path, f"{line.replace('fatal', 'info')}\n") is None


def test_frames_above_an_exception_say_that_python_raised_it(tmp_path: Path) -> None:
    frames = '  File "/job/client.py", line 233, in connect\n    raise Exception(text)\n'
    assert role(tmp_path, f"{frames}Exception: request failed: 404\n") == "first"
    assert role(tmp_path, "Exception: request failed: 404\n") == "noted"
    told = story(tmp_path, f"{frames}Exception: request failed: 404\n")
    assert told is not None and told.first is not None and told.first.frame == "client.py:233 in connect"


def test_a_logger_of_cpp_prints_no_traceback_of_python(tmp_path: Path) -> None:
    raised = 'Traceback (most recent call last):\n  File "/job/kv.py", line 9, in <module>\n    setup()\nRuntimeError: no store\n'
    assert role(tmp_path, f"E1102 10:11:12.101011 2331 store_py.cpp:61] cannot mount\n{raised}") == "first"
    assert role(tmp_path, f"E1102 10:11:12.101011 2331 store_py.py:61] cannot mount\n{raised}") == "noted"


def test_a_dump_that_somebody_asked_for_ends_nothing_by_itself(tmp_path: Path) -> None:
    dump = 'Timeout (0:10:00)!\nThread 0x00007f2 (most recent call first):\n  File "/job/sync.py", line 44 in wait\n'
    assert role(tmp_path, dump) == "noted"
    told = story(tmp_path, f"{dump}[launcher] rank 3 (pid 81) exited with code 1, stopping the others\n")
    assert told is not None and told.first is not None


def test_a_report_of_torchrun_says_how_the_first_process_ended(tmp_path: Path) -> None:
    text = (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n=====\nrun.py FAILED\n-----\nFailures:\n  <NO_OTHER_FAILURES>\n"
        "-----\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-05-21_15:43:03\n  host      : n3\n  rank      : 2 (local_rank: 2)\n"
        "  exitcode  : -9 (pid: 1475)\n  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 1475\n"
    )
    told = story(tmp_path, text)
    assert told is not None and told.first is not None and told.first.who[0].rank == 2
    assert told.first.lines[:2] == ("exitcode  : -9 (pid: 1475)", "traceback : Signal 9 (SIGKILL) received by PID 1475")


def test_the_child_of_a_rank_is_told_with_its_rank(tmp_path: Path) -> None:
    told = story(tmp_path, "[rank31]: RuntimeError: DataLoader worker (pid 502) is killed by signal: Killed.\n")
    assert told is not None and told.first is not None
    assert [(w.label, w.rank, w.pid) for w in told.first.who] == [("DataLoader worker rank 31 pid 502", 31, 502)]


def test_what_will_now_abort_had_a_reason_before(tmp_path: Path) -> None:
    reason = "[1641461840.681245] [n2:3591 :0]  rc_iface.c:492  UCX  ERROR ibv_create_srq() failed: Operation not supported\n"
    ends = "Your MPI job will now abort.\n"
    assert role(tmp_path, ends) == "first"
    assert role(tmp_path, reason) == "noted"
    told = story(tmp_path, reason + ends)
    assert told is not None and told.first is not None and told.first.text.startswith("ibv_create_srq")


def test_words_of_a_known_error_itself_are_no_words_of_what_was_done(tmp_path: Path) -> None:
    told = "Detected mismatch between collectives on ranks. Rank 1 is running collective: F(A), but Rank 7 is running {}\n"
    known = f"[RANK 1] 2026-05-19 10:10:29,701 [ERROR] {told}"
    assert role(tmp_path, known.format("collective: F(B).")) == "first"
    assert role(tmp_path, known.format("collective: F(B), slot 7 was refilled")) == "noted"


def test_a_job_that_finished_as_failed_did_not_finish(tmp_path: Path) -> None:
    assert role(tmp_path, "✓ Job finished (status: FAILED_DRIVER).\n") == "first"
    assert role(tmp_path, "✓ Job finished (status: SUCCEEDED).\n") is None


def test_what_ray_shows_of_a_failed_job_was_written_before(tmp_path: Path) -> None:
    failed = "2026-10-28 15:55:50,118\tERR cli.py:69 -- Job 'raysubmit_8s' failed\n"
    assert role(tmp_path, f"{failed}step 34 loss 1.0\nstep 35 loss 1.0\nstep 36 loss 1.0\n") == "first"


@pytest.mark.parametrize(
    ("said", "expected"), [("Worker 2 failed with exception: no room", "first"), ("Worker 2 failed a request: no room", "noted")]
)
def test_who_failed_with_an_exception_ended(tmp_path: Path, said: str, expected: str) -> None:
    raised = 'Traceback (most recent call last):\n  File "/job/loop.py", line 5, in poll\n    step()\nKeyError: 4\n'
    record = "(Sampler pid=687) 2026-06-16 06:38:19,574 worker ERROR: "
    assert role(tmp_path, f"{record}{said}\n{raised}") == expected


@pytest.mark.parametrize("after", ["the node is drained", "rank 3 is stuck", "the engine crashed", "leaving the group", "all slots are unhealthy"])
def test_words_of_an_end_behind_an_error_keep_every_excuse_away(tmp_path: Path, after: str) -> None:
    error = "2026-11-02 10:11:12,100 ERROR pool.py:9 -- the queue of slot 4 is odd\n"
    note = "2026-11-02 10:11:12,{} INFO pool.py:10 -- {}\n"
    assert role(tmp_path, error + note.format(200, "filling the queue") + note.format(300, "taking slot 5")) is None
    assert role(tmp_path, error + note.format(200, after) + note.format(300, "taking slot 5")) == "noted"


def test_an_exception_in_a_warning_is_in_the_hands_of_whoever_warns(tmp_path: Path) -> None:
    record = "[NeMo {} 2026-01-01 10:00:00 log_utils:405] /opt/parts/voice: ModuleNotFoundError: No module named 'voice'. Some parts are off.\n"
    assert role(tmp_path, record.format("W")) == "noted"
    assert role(tmp_path, "(raylet) WARNING: Raylet is terminated: ip=10.0.0.6, id=0973. Termination is unexpected.\n") == "first"
