"""Which failure came first and which was survived, as a sixth, unseen lot of logs showed it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.logs.words import goes_on
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.log_story import LogStory

WATCHDOG = (
    "(Worker pid={0}) [rank{0}]:[E504 11:20:03.120000000 ProcessGroupNCCL.cpp:683] [Rank {0}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=808, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600045 milliseconds before timing out.\n"
    "(Worker pid={0}) terminate called after throwing an instance of 'c10::DistBackendError'\n"
)


EXEC = 'File "/w/sandbox.py", line 9, in run\n    exec(code)\n  File "<string>", line 3, in <module>'


def story(folder: Path, text: str) -> LogStory:
    (folder / "job.log").write_text(text)
    found = load([folder / "job.log"]).snapshot
    assert found is not None
    told = diagnose(found).story
    assert told is not None
    return told


def raised(mark: str, error: str, frame: str = 'File "/w/actor.py", line 402, in update') -> str:
    return "".join(f"{mark}{line}\n" for line in ("Traceback (most recent call last):", f"  {frame}", "    loss.backward()", error))


def test_what_stands_before_the_first_stamp_of_a_file_came_before_it(tmp_path: Path) -> None:
    told = story(tmp_path, raised("(Worker pid=5) ", "ValueError: bad shard") + "".join(WATCHDOG.format(i) for i in (1, 2, 3)))
    assert told.first is not None
    assert (told.first.who[0].pid, told.first.text, told.first.time) == (5, "ValueError: bad shard", None)


def test_behind_a_stamp_the_order_of_lines_is_no_news(tmp_path: Path) -> None:
    told = story(tmp_path, WATCHDOG.format(1) + raised("(Worker pid=5) ", "ValueError: bad shard"))
    assert told.first is not None and told.first.who[0].pid in (1, 5)


@pytest.mark.parametrize(
    "text",
    [
        # Python's tracker of shared memory prints what it caught.
        raised("", "KeyError: '/psm_1'", 'File "/usr/lib/python3.12/multiprocessing/resource_tracker.py", line 239, in main')
        + "serving 3 requests\n",
        "--- Logging error ---\n" + raised("", "TypeError: not all arguments converted during string formatting") + "step 3 done\n",
        # A program runs text as code, and tells what came of it.
        raised("", "NameError: name 'n' is not defined", EXEC) + "code of sample 81 raised NameError, score 0.0\nscored 128 samples\n",
        "2026-01-05 11:00:00 DEBUG in use: OSError: [Errno 98] Address already in use\nlistening on 8002\n",
        '(Reward pid=8) sandbox: {"stderr": "Traceback (most recent call last):\\n  File \'a.py\', line 1\\nRecursionError: deep", "exit_code": 1}\n',
        "/w/train.py:10: UserWarning: CUDA initialization: The NVIDIA driver on your system is too old (found version 11040).\nstep 1 ok\n",
        "ERROR 08-14 13:42:42 [attn.py:57] Version 2 is not supported on this GPU\nINFO 08-14 13:42:43 [cuda.py:289] Using XFormers backend.\n",
        "the answer: To mend `RuntimeError: CUDA out of memory`, take a smaller batch.\n",
        "  triton_mm_13 inf ms 0.0% OutOfResources: out of resource: shared memory, Required: 294912, Hardware limit: 232448. Reducing\n",
        raised("", "openai.RateLimitError: Error code: 429") + "Retrying in 2 s (1/8)\nscored 8 answers\n",
        "wandb: ERROR Failed to sample metric: Not Supported\nwandb: Synced 5 files\n",
        "df: /w/.cache: No such file or directory\nls: cannot access '/w/x': No such file or directory\nstarting\n",
        "(Runner pid=8) [prompt] What does `Segmentation fault (core dumped)` mean?\n(Runner pid=8) [response] It exited with code 139.\n",
        "model answer: torch.OutOfMemoryError: CUDA out of memory\n",
        "[2026-11-22 10:00:00,100 C 77 77] core_worker.cc:500: Exit signal received, exit_type=INTENDED_USER_EXIT\nup\n",
        "Nov 20 10:11:12 node42 sshd[12]: error: kex_exchange_identification: Connection closed by remote host\n",
        "step 100: sampled answer:\n" + raised("", "ZeroDivisionError: division by zero") + "step 101: reward 0.2\nstep 102: reward 0.3\n",
    ],
)
def test_what_was_caught_accuses_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "job.log").write_text(text)
    try:
        found = load([tmp_path / "job.log"]).snapshot
    except UnreadableFileError:
        return  # nothing in it that any reader knows
    assert found is not None
    report = diagnose(found)
    assert report.findings == () and (report.story is None or report.story.first is None)


def test_code_given_to_python_itself_ends_it(tmp_path: Path) -> None:
    told = story(tmp_path, raised("", "NameError: name 'n' is not defined", 'File "<string>", line 1, in <module>'))
    assert told.first is not None


def test_an_error_that_a_catch_all_reports_is_not_known_to_be_survived(tmp_path: Path) -> None:
    said = "An error has been caught in function 'train', process 'MainProcess' (5):\n"
    record = f"(Worker pid=5) 2026-12-06 12:51:11.000 | ERROR    | w.fsdp:train:210 - {said}"
    told = story(tmp_path, record + raised("(Worker pid=5) ", "IndexError: index 4096 is out of bounds"))
    assert told.first is not None and told.first.text.startswith("IndexError")


def test_a_traceback_that_is_the_message_of_an_object_is_read_to_its_end(tmp_path: Path) -> None:
    object_ = (
        '{"timestamp": "2026-09-01T06:05:02.411Z", "severity": "ERROR", "rank": 2, "message": "Traceback (most recent call last):\\n'
        '  File \\"/w/dl.py\\", line 5, in next\\n    return open_file(f)\\npyarrow.lib.ArrowInvalid: Not an Arrow file"}\n'
    )
    told = story(tmp_path, '{"timestamp": "2026-09-01T06:05:01.411Z", "severity": "INFO", "rank": 2, "message": "step 3"}\n' + object_)
    assert told.first is not None and (told.first.text, told.first.who[0].rank) == ("pyarrow.lib.ArrowInvalid: Not an Arrow file", 2)


def test_notes_beside_a_timeout_are_not_the_first_failure(tmp_path: Path) -> None:
    said = "Stack trace of the failed collective not found, potentially because FlightRecorder is disabled."
    note = f"[rank1]:[E504 11:20:03.130000000 ProcessGroupNCCL.cpp:730] {said}\n"
    told = story(tmp_path, "".join(WATCHDOG.format(i).split("\n")[0] + "\n" for i in (1, 2)) + note)
    assert told.first is not None and "Watchdog caught" in told.first.text


def test_a_count_of_skipped_steps_does_not_say_that_an_error_was_skipped(tmp_path: Path) -> None:
    record = "worker-2: [2026-02-02 01:12:06,100] [INFO] [Rank 16] step=119, skipped=0\n"
    told = story(tmp_path, record + raised("worker-2: ", "RuntimeError: CUDA error: 710"))
    assert told.first is not None and told.first.who[0].node == "worker-2"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("attempt 1/3: 503 Service Unavailable", "attempt 1/3"),
        ("upload failed, falling back to: 10.0.0.2", "falling back to"),
        ("fetch failed, retry=3", "retry"),
        ("tests: failed=2 skipped=0", None),
        ('{"failed": 2, "ignored": 1}', None),
    ],
)
def test_a_number_behind_an_attempt_is_no_count_of_what_was_survived(text: str, words: str | None) -> None:
    assert goes_on(text) == words


def test_the_result_of_a_library_belongs_to_the_error_that_it_became(tmp_path: Path) -> None:
    error = "torch.distributed.DistBackendError: NCCL error in: a.cpp:3, remote process exited or there was a network error, NCCL version 2.26.2"
    result = "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."
    told = story(tmp_path, raised("[rank1]: ", error) + f"[rank1]: {result}\n")
    assert told.first is not None and told.first.is_echo and told.then == ()


def test_a_launcher_that_ends_the_others_did_not_write_on(tmp_path: Path) -> None:
    record = "worker-2: [2026-02-02 01:12:0{},100] [INFO] [{}]"
    text = record.format(0, "Rank 16") + " step=119\n" + raised("worker-2: ", "RuntimeError: CUDA error: 710") + record.format(3, "launch.py:335:end")
    told = story(tmp_path, text + " Killing subprocess 700\n")
    assert told.first is not None and told.first.text == "RuntimeError: CUDA error: 710"


@pytest.mark.parametrize("mark", ["[gpu-4:2]:", "<3> ", "2026/05/04T09-00-0{} app>> ", "node4 #7 "])
def test_a_mark_that_nobody_knows_is_that_of_the_whole_traceback(tmp_path: Path, mark: str) -> None:
    lines = raised("", "SystemError: driver gone").splitlines()
    told = story(tmp_path, "".join(f"{mark.format(i)}{line}\n" for i, line in enumerate(lines)) + "[gpu-4:0]:up\n")
    entry = told.first or told.noted[0]
    assert (entry.text, entry.frame) == ("SystemError: driver gone", "actor.py:402 in update")


def test_the_report_of_the_kernel_names_whom_it_killed(tmp_path: Path) -> None:
    stamp = "Nov 20 10:11:12 node42 kernel: "
    killed = "Memory cgroup out of memory: Killed process 99231 (ray::WorkerDict) total-vm:88888888kB, anon-rss:70000000kB"
    told = story(tmp_path, f"{stamp}python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=1000\n{stamp}{killed}\n")
    assert told.first is not None and told.first.who[0].pid == 99231


def test_a_tool_that_complains_last_is_the_failure(tmp_path: Path) -> None:
    assert story(tmp_path, "start\ncat: /w/hosts: No such file or directory\n").noted != ()


def test_a_stamp_without_a_year_is_of_the_year_of_its_log(tmp_path: Path) -> None:
    late = "2025-08-02 06:30:00,000 ERROR collecting failed\n"
    told = story(tmp_path, f"2025-08-01 10:00:00,000 INFO step 1\n{late}[rank3]:[E802 06:06:21.000000000 a.cpp:3] device lost\n")
    assert (told.first or told.noted[0]).time == "2025-08-02 06:06:21.0"


def test_the_reason_that_an_object_gives_is_told(tmp_path: Path) -> None:
    told = story(tmp_path, '{"level":"info","msg":"up"}\n{"level":"error","msg":"cannot go on","error":"no matches for kind RayJob"}\n')
    assert told.first is not None and told.first.text == "cannot go on: no matches for kind RayJob"


def test_of_calls_within_each_other_the_innermost_process_failed(tmp_path: Path) -> None:
    outer = "ray.exceptions.RayTaskError(ValueError): ray::Runner.run() (pid=11, ip=10.0.0.1, actor_id=0a)"
    inner = "ray.exceptions.RayTaskError(ValueError): ray::Learner.update() (pid=22, ip=10.0.0.2, actor_id=0b)"
    frames = ('File "/w/main.py", line 8, in main', 'File "/w/driver.py", line 9, in fit', 'File "/w/loss.py", line 10, in ratio')
    lines = ["Traceback (most recent call last):", f"  {frames[0]}", outer, f"  {frames[1]}", inner, f"  {frames[2]}", "ValueError: odd"]
    told = story(tmp_path, "\n".join(lines) + "\n")
    assert told.first is not None and told.first.text == "ValueError: odd"
    assert (told.first.who[0].label, told.first.who[0].node, told.first.frame) == ("Learner pid 22", "10.0.0.2", "loss.py:10 in ratio")


def test_a_line_that_says_when_a_job_ended_has_that_time(tmp_path: Path) -> None:
    ended = "slurmstepd: error: *** JOB 9 ON gpu-b1 CANCELLED AT 2026-03-02T16:22:31 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"
    told = story(tmp_path, f"[2026-03-02T16:20:11.220] launch: ok\n{ended}\nsrun: error: Node failure on gpu-b7\n")
    assert told.first is not None and (told.first.signature, told.first.who[0].node) == ("RRD6225", "gpu-b7")
    assert told.first.time == "2026-03-02 16:22:31.0"


def test_a_line_that_says_when_somebody_was_seen_has_the_time_before_it(tmp_path: Path) -> None:
    told = story(tmp_path, "2026-03-02 10:00:00,000 INFO start\nFATAL: node n4 is gone, last seen at 2026-03-02 09:12:00\n")
    assert told.first is not None and told.first.time == "2026-03-02 10:00:00.0"


def test_an_actor_that_died_in_its_creation_is_told_by_what_it_raised(tmp_path: Path) -> None:
    died = "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, ray::Judge.__init__() (pid=7, ip=10.0.0.3)"
    told = story(tmp_path, f'{died}\n  File "/w/judge.py", line 3, in __init__\n    self.rules = read(path)\nValueError: no rules\n')
    assert told.first is not None and (told.first.text, told.first.who[0].label) == ("ValueError: no rules", "Judge pid 7")
    assert not told.first.is_echo


@pytest.mark.parametrize(("raisers", "who"), [((2,), "rank 2"), ((2, 3), "job.log")])
def test_what_code_on_a_card_prints_is_of_the_process_that_raises_next(tmp_path: Path, raisers: tuple[int, ...], who: str) -> None:
    card = "/w/Indexing.cu:1422: pick: block: [7,0,0], thread: [64,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
    raised_by = "".join(raised(f"[rank{rank}]: ", "RuntimeError: CUDA error: device-side assert triggered") for rank in raisers)
    told = story(tmp_path, card + raised_by)
    assert told.first is not None and (told.first.signature, told.first.who[0].label) == ("RRD6210", who)


def test_a_logger_whose_name_has_words_tells_level_and_rank(tmp_path: Path) -> None:
    told = story(tmp_path, "20251203-23:50:01.120 RemoteInfEngine Rank 2 ERROR: the rollout thread died\n" + raised("", "RuntimeError: no server"))
    assert told.first is not None and (told.first.text, told.first.who[0].label) == ("RuntimeError: no server", "rank 2")


@pytest.mark.parametrize(("done", "failed"), [("Training complete, reward 0.9", False), ("Training goes on, reward 0.9", True)])
def test_what_follows_the_end_of_the_work_is_of_that_end(tmp_path: Path, done: str, failed: bool) -> None:
    gone = "[rank1]:[W1204 04:00:10.000000000 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=70): failed to recv, got 0 bytes\n"
    told = story(tmp_path, f"{done}\n{gone}")
    assert bool(told.first or told.noted) is failed


def test_a_shell_that_complained_and_went_on_accuses_nobody(tmp_path: Path) -> None:
    complaint = "bash: /opt/conda/profile.sh: No such file or directory\n"
    assert story(tmp_path, f"{complaint}Starting the server\n").first is None
    assert len(story(tmp_path, complaint).noted) == 1
    assert story(tmp_path, "run.sh: line 3: torchrun: command not found\n").first is not None


def test_a_container_that_ended_is_told_with_its_name(tmp_path: Path) -> None:
    refused = "rollout-1  | 2026-03-02 10:00:41,001 ERROR cannot push: httpx.ConnectError: [Errno 111] Connection refused\n"
    told = story(tmp_path, f"trainer-1  | 2026-03-02 10:00:00,001 INFO step 11\ntrainer-1 exited with code 137\n{refused}")
    assert told.first is not None and (told.first.text, told.first.who[0].node) == ("trainer-1 exited with code 137", "trainer-1")


def test_an_exception_below_the_line_of_a_failed_call_is_of_the_process_that_it_names(tmp_path: Path) -> None:
    call = "(Controller pid=300) ray.exceptions.RayTaskError(RuntimeError): ray::Replica.start() (pid=4410, ip=10.0.0.6, actor_id=1)\n"
    told = story(tmp_path, f"{call}(Controller pid=300) RuntimeError: the checkpoint is truncated\n")
    assert told.first is not None and (told.first.text, told.first.who[0].pid) == ("RuntimeError: the checkpoint is truncated", 4410)
    told = story(tmp_path, "(Controller pid=300) calling ray::Replica.start\n(Controller pid=300) RuntimeError: the checkpoint is truncated\n")
    assert told.first is not None and told.first.who[0].pid == 300
