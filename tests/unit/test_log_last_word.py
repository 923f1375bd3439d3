"""What ends a program is its last word, also where the error is a known one; and what it shows of others is none of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_log_blocks_alone import RAISED as BODY
from test_log_blocks_alone import role

RAISED = ("Traceback (most recent call last):", '  File "{file}", line 3, in <module>', "    run()", "ValueError: no such part")


def traceback(before: str, file: str, head: str = "") -> str:
    return "".join(f"{before}{head if number == 0 else ''}{row.format(file=file)}\n" for number, row in enumerate(RAISED))


@pytest.mark.parametrize(
    ("known", "goes_on"),
    [
        (
            "2026-03-02 09:00:00,100 ERROR hub.py:3 -- LocalEntryNotFoundError: the hub has no such file\n",
            "2026-03-02 09:00:09,100 INFO hub.py:9 -- 8 shards read\n",
        ),
        (
            "(LoaderWorker pid=7) jinja2.exceptions.TemplateError: Conversation roles must alternate\n",
            "(LoaderWorker pid=7) 2026-03-02 09:00:09,100 INFO rows.py:9 -- 7473 rows\n",
        ),
    ],
)
def test_a_known_error_is_noted_where_its_writer_wrote_on(tmp_path: Path, known: str, goes_on: str) -> None:
    assert role(tmp_path, known) == "first"
    assert role(tmp_path, known + goes_on) == "noted"
    assert role(tmp_path, known + goes_on.replace("INFO", "ERROR").replace("7473 rows", "exiting").replace("8 shards read", "exiting")) == "first"


def test_where_work_stopped_at_a_known_error_its_process_may_write_on(tmp_path: Path) -> None:
    work = "".join(f"2026-03-02 08:{m}:00,000 INFO trainer.py:9 -- step {m} loss 0.2\n" for m in (10, 11, 12))
    known = "2026-03-02 09:00:00,100 ERROR hub.py:3 -- LocalEntryNotFoundError: the hub has no such file\n"
    beats = "2026-03-02 09:00:09,100 INFO beat.py:9 -- alive\n"
    assert role(tmp_path, work + known + beats) == "first"


@pytest.mark.parametrize(
    ("error", "behind"),
    [
        ("[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered\n", "[rank1]: I0302 09:00:09 alive\n"),
        ("[ 8812.1] NVRM: Xid (PCI:0000:1b:00): 79, pid=77, name=python, GPU has fallen off the bus.\n", "[ 8815.1] usb 1-1: new device\n"),
        (
            "[2026-03-02 09:00:00 TP0] Watchdog timeout (self.watchdog_timeout=300)\n",
            "[2026-03-02 09:00:01 TP0] Pyspy dump for PID 71:\n",
        ),
        ("Error merging override trainer.gpus=many\n", "Value 'many' could not be converted to Integer\n"),
    ],
)
def test_a_lost_device_a_service_and_a_long_message_write_on(tmp_path: Path, error: str, behind: str) -> None:
    assert role(tmp_path, error + behind) == "first"


@pytest.mark.parametrize("words", ["[turn 7] stderr: ", "tool_result=", "verdict of the browser: "])
def test_a_traceback_behind_words_was_in_the_hands_of_whoever_wrote_them(tmp_path: Path, words: str) -> None:
    assert role(tmp_path, traceback("(AgentLoop pid=7) ", "/srv/app/a.py", words)) == "noted"
    assert role(tmp_path, traceback("", "/srv/app/a.py", "Initialization failed. warmup error: ")) == "first"


def test_a_sample_that_begins_with_a_traceback_holds_all_of_it(tmp_path: Path) -> None:
    assert role(tmp_path, traceback("(AgentLoop pid=7) ", "/srv/app/a.py", "[turn 7] observation: ")) in (None, "noted")


def test_a_program_in_a_folder_of_its_own_is_a_guest_of_an_actor(tmp_path: Path) -> None:
    assert role(tmp_path, traceback("(AgentLoop pid=7) ", "answer.py")) == "noted"
    assert role(tmp_path, traceback("(AgentLoop pid=7) ", "/testbed/manage.py")) == "noted"
    assert role(tmp_path, traceback("(AgentLoop pid=7) ", "/srv/rl/rows.py")) == "first"
    assert role(tmp_path, traceback("", "answer.py")) == "first"


LISTED = "NAMESPACE NAME READY STATUS RESTARTS AGE\n"


@pytest.mark.parametrize(
    ("beside", "failed", "expected"),
    [
        ("rl trainer-0 1/1 Running 0 5h\n", "monitoring loki-0 0/1 CrashLoopBackOff 88 7d\n", "noted"),
        ("rl trainer-0 1/1 Running 0 5h\n", "billing train-0 0/1 CrashLoopBackOff 88 7d\n", "noted"),
        ("rl trainer-0 1/1 Running 0 5h\n", "rl trainer-1 0/1 CrashLoopBackOff 88 7d\n", "first"),
        ("", "monitoring loki-0 0/1 CrashLoopBackOff 88 7d\n", "noted"),
        ("", "ml grpo-7b-0 0/1 CrashLoopBackOff 88 7d\n", "first"),
        ("4m  Normal  Started  pod/trainer-0  Started\n", "5m  Normal  Preempted  pod/notebook-7  Preempted by pod 91ab on node n5\n", "noted"),
        ("4m  Normal  Started  pod/trainer-0  Started\n", "5m  Normal  Preempted  pod/rollout-7  Preempted by pod 91ab on node n5\n", "first"),
    ],
)  # fmt: skip
def test_an_object_beside_those_of_the_run_may_be_anybodys(tmp_path: Path, beside: str, failed: str, expected: str) -> None:
    assert role(tmp_path, (LISTED if "/1" in failed else "") + beside + failed) == expected


def test_what_is_used_instead_says_that_the_program_goes_on(tmp_path: Path) -> None:
    lost = "(DataWorker pid=7) Couldn't reach 'org/data' on the Hub (LocalEntryNotFoundError)"
    assert role(tmp_path, f"{lost}\n") == "first"
    assert role(tmp_path, f"{lost}, using the cached copy\n") == "noted"
    assert role(tmp_path, f"{lost}. The tokenizer of the base model is used.\n") == "noted"
    assert role(tmp_path, f"{lost}. The loader is lost.\n") == "first"


@pytest.mark.parametrize(
    "ended",
    [
        "(EngineActor pid=7) Exception: Server process terminated unexpectedly.",
        "2026-03-02 09:00:00,100 ERROR start.py:3 -- Server process on port 11451 exited with return code -9",
    ],
)
def test_who_ended_unexpectedly_ended(tmp_path: Path, ended: str) -> None:
    assert role(tmp_path, f"{ended}\n") == "first"


def test_what_a_model_is_asked_about_may_begin_like_a_record(tmp_path: Path) -> None:
    asked = "[prompt] Why does my job fail?\nERROR: Process completed with exit code 137.\nOOMKilled\n"
    assert role(tmp_path, f"{asked}[response] It ran out of memory.\n[score] 0.5\n") is None
    assert role(tmp_path, asked) == "first"


def test_rays_client_tells_that_a_job_failed(tmp_path: Path) -> None:
    line = "2026-03-02 09:00:00,100 {} cli.py:72 -- Job 'raysubmit_8x' {}\n"
    assert role(tmp_path, line.format("ERR", "failed")) == "first"
    assert role(tmp_path, line.format("SUCC", "succeeded")) is None


@pytest.mark.parametrize("says", ["Judge error: ", "Error listing server groups: ", "Could not read the queue: "])
def test_the_end_of_a_peer_may_be_the_reason_of_a_complaint(tmp_path: Path, says: str) -> None:
    died = "The actor died unexpectedly before finishing this task\n"
    assert role(tmp_path, says + died) == "noted"
    assert role(tmp_path, f"ray.exceptions.ActorDiedError: {died}") == "first"


def test_a_warning_does_not_say_by_words_around_a_known_error_that_anything_ended(tmp_path: Path) -> None:
    line = "2026-03-02 09:00:00,100 - app - {} - making the session of the pool failed ([Errno 28] No space left on device), the loop has ended\n"
    assert role(tmp_path, line.format("ERROR")) == "first"
    assert role(tmp_path, line.format("WARNING")) == "noted"


def test_who_asks_whether_something_ended_does_not_say_so(tmp_path: Path) -> None:
    line = "2026-03-02 09:00:00,100 ERROR tracker.py:3 -- no answer {} the run stopped\n"
    assert role(tmp_path, line.format("when asked whether")) == "noted"
    assert role(tmp_path, line.format("of the store,")) == "first"


def test_what_is_announced_to_be_ignored_is_survived(tmp_path: Path) -> None:
    line = "2026-03-02 09:00:00,100 ERROR cache.py:3 -- Could not cache it. {}. Error: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    assert role(tmp_path, line.format("Will ignore error and continue")) is None
    assert role(tmp_path, line.format("The loop has ended")) == "first"


NOTE = "2026-03-02 09:00:00,100 INFO pool.py:3 -- 8 readers started\n"
RECORD = "2026-03-02 09:00:09,100 ERROR pool.py:9 -- The engine failed in its loop\n"


@pytest.mark.parametrize(
    "text",
    [
        NOTE + RECORD,
        NOTE + RECORD + "2026-03-02 09:00:10,100 INFO pool.py:7 -- readers are closed, shutting down\n",
        NOTE + RECORD.replace("engine failed in its loop", "engine 5 did not answer within 300 s"),
        NOTE + RECORD.replace("The engine failed in its loop", "row 7 is broken") + BODY,
    ],
)
def test_where_a_log_stops_whoever_copied_it_may_have_cut_it(tmp_path: Path, text: str) -> None:
    assert role(tmp_path, text) == "noted"


def test_a_traceback_whose_lines_were_stamped_one_by_one_has_the_level_of_who_collected_them(tmp_path: Path) -> None:
    lines = traceback("ERROR 2026-03-02T09:00:00.{} [labels.task: pool0-0] ", "/job/train.py").splitlines()
    collected = "".join(line.format(776877384 + 1007 * n) + "\n" for n, line in enumerate(lines))
    assert role(tmp_path, collected) == "first"
    one_time = "".join(line.format(776877384) + "\n" for line in lines).replace("in <module>", "in fetch")
    assert role(tmp_path, one_time) == "noted"
    assert role(tmp_path, collected.replace("in <module>", "in run")) == "first"


@pytest.mark.parametrize("said", ["Producer thread failed", "Application 'default' DEPLOY_FAILED: The deployment failed to start 3 times in a row."])
def test_a_sentence_has_to_say_itself_that_a_part_of_the_run_ended(tmp_path: Path, said: str) -> None:
    assert role(tmp_path, NOTE + RECORD.replace("The engine failed in its loop", said)) == "first"


def test_advice_to_try_something_again_is_no_word_of_what_was_done(tmp_path: Path) -> None:
    raised = "sql.OperationalError: (1213, 'Deadlock found; {} the transaction')\n"
    assert role(tmp_path, raised.format("try restarting")) == "first"
    assert role(tmp_path, raised.format("restarting")) is None


def test_an_exception_without_a_message_is_whole(tmp_path: Path) -> None:
    assert role(tmp_path, "TimeoutError\n[slot 12] reset is done now\n") is None
    assert role(tmp_path, "TimeoutError\n[slot 12] asked for the next row\n") == "noted"
    assert role(tmp_path, "TimeoutError:\nslot 12 asked for the next row\n") == "first"
    assert role(tmp_path, "TimeoutError\n") == "first"


def test_what_ended_and_was_made_anew_is_survived(tmp_path: Path) -> None:
    died = "(Pool pid=81) ray.exceptions.RayActorError: The actor died because it was killed by `ray.kill`.\n"
    assert role(tmp_path, died) is not None
    assert role(tmp_path, f"{died}(Pool pid=81) env actor 7 recreated\n") is None
    assert role(tmp_path, f"{died}(Pool pid=81) env actor 7 was not recreated\n") is not None


NCCL_WARN = "gpu-3:881:902 [1] misc/ibvwrap.cc:94 NCCL WARN Call to ibv_open_device failed\n"


@pytest.mark.parametrize(
    ("known", "goes_on"),
    [
        (
            "Warning  Unhealthy  41s  kubelet  Liveness probe failed: HTTP probe failed with statuscode: 503\n",
            "Normal  Pulled  12s  kubelet  image present\n",
        ),
        ("ckpt: [Errno 5] Input/output error: '/ckpt/a.tmp'\n", "[rank2]: step 12 loss 0.4\n"),
    ],
)
def test_a_known_error_of_nobody_is_noted_where_anybody_writes_on(tmp_path: Path, known: str, goes_on: str) -> None:
    assert role(tmp_path, known + goes_on) == "noted"


@pytest.mark.parametrize(
    ("known", "more"),
    [
        ("[ 812.101] INFO: task python3:33121 blocked for more than 120 seconds.\n", "[ 812.102]       Tainted: P           OE\n"),
        ("gpu-3 kernel: Out of memory: Killed process 4411 (python3) total-vm:1kB\n", "Normal  Started  pod/trainer-0  Started container trainer\n"),
        ("mlx5: gpu-3: got completion with error:\n", "00000000 00000000 00000000 00000000\n"),
        (NCCL_WARN.replace("\n", "\n" + NCCL_WARN), ""),
    ],
)
def test_more_lines_of_one_report_are_no_going_on(tmp_path: Path, known: str, more: str) -> None:
    assert role(tmp_path, known + more) == "first"


@pytest.mark.parametrize(
    "lines",
    [
        "2026-03-02 09:00:00,100 ERROR tune.py:1 -- Trial task failed for trial lr_3\n2026-03-02 09:00:09,100 INFO tune.py:3 -- 7 RUNNING, 1 ERROR\n",
        (
            "[rank1]:[E302 09:00:00.100 socket.cpp:1019] [c10d] The client socket has timed out after 60000ms while trying to connect to (n1, 1).\n"
            "[rank1]:[W302 09:00:01.100 socket.cpp:900] [c10d] The client socket is connected to (n1, 1) on try 2\n"
        ),
        "gpu-3:881:1042 [0] ofi:1212 NCCL WARN NET/OFI Failed to initialize\ngpu-3:881:1042 [0] NCCL INFO NET/OFI provider is efa\n",
        "slurmd: error: slurm_receive_msg_and_forward: [[gpu-1]:41212] failed: Zero Bytes were transmitted or received\n",
    ],
)
def test_a_count_of_failures_a_warning_and_a_daemon_without_a_job_accuse_nobody(tmp_path: Path, lines: str) -> None:
    assert role(tmp_path, lines) in ("noted", None)
