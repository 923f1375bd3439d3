"""An error that was logged, beside nothing that says that anything ended, is no failure yet; beside the same words with an end it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_log_blocks_alone import role
from test_log_innocents import story

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.logs import add_logs, read_log
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.render.markdown import render as render_markdown
from ray_rl_debug.render.terminal import render as render_terminal

CAUGHT = 'Traceback (most recent call last):\n  File "/job/pool.py", line 31, in fetch\n    return table[key]\nKeyError: 41\n'
UNCAUGHT = 'Traceback (most recent call last):\n  File "/job/train.py", line 31, in <module>\n    main()\nKeyError: 41\n'
RECORD = "2026-03-02 09:14:22,871 ERROR pool.py:88 -- The cache has no entry\n"


def report_on(folder: Path, text: str) -> Report:
    (folder / "out.txt").write_text(text)
    found = read_log(folder / "out.txt", "job")
    assert found is not None
    return diagnose(add_logs(None, [found]))


def told(folder: Path, text: str) -> tuple[str, str]:
    """The role of the first entry, and its words."""
    story = report_on(folder, text).story
    assert story is not None
    entry = story.first or story.noted[0]
    return entry.role, entry.text


@pytest.mark.parametrize(
    "alone",
    [
        RECORD,
        CAUGHT,
        f"{RECORD}{CAUGHT}",
        f"2026-03-02 09:14:22,871 WARNING pool.py:88 -- The cache has no entry\n{CAUGHT}",
        "(RewardWorker pid=70) ERROR:2026-03-02 09:14:22,871:verdict of sample was no number\n",
        "rm: cannot remove '/scratch/old': No such file or directory\n",
        "Error: the name is in use\n",
        'Traceback (most recent call last):\n  File "/tmp/ab12/solution.py", line 3, in <module>\n    print(x)\nNameError: x\n',
        "2026-03-02 09:14:22,871 - tracer - ERROR - Unexpected error occurred\n",
        "Failed to import from vllm.vllm_flash_attn: No module named 'vllm.vllm_flash_attn'\n",
        CAUGHT.replace("KeyError: 41", "ModuleNotFoundError: No module named 'fast_norm'"),
        RECORD + CAUGHT.replace("KeyError: 41", "ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready."),
        "2026-03-02 09:14:22 ERROR request 8f1a was aborted by the update of weights\n",
        "2026-02-02 09:05:35,040 9871:ERROR:tornado.application: Exception in callback\n" + CAUGHT,
    ],
)
def test_what_a_logger_wrote_alone_is_noted(tmp_path: Path, alone: str) -> None:
    report = report_on(tmp_path, alone)
    assert report.story is not None and report.story.first is None
    assert [e.role for e in report.story.noted] == ["noted"]
    assert report.findings == ()
    assert (report.verdict.state, report.verdict.certainty) == (State.UNKNOWN, Certainty.POSSIBLE)
    assert "an error was logged, and nothing in these logs says that anything ended" in report.verdict.summary
    assert "to settle it: the lines behind it" in report.verdict.summary


@pytest.mark.parametrize(
    "end",
    [
        RECORD.replace("The cache has no entry", "The cache has no entry, exiting"),
        RECORD.replace("The cache has no entry", "Engine core failed to start: no cache"),
        RECORD.replace("The cache has no entry", "Failed to start the worker of rank 3"),
        RECORD.replace("ERROR", "CRITICAL"),
        UNCAUGHT,
        CAUGHT.replace("in fetch", "in main"),
        CAUGHT.replace("\n", "\n[rank3]: ").join(("[rank3]: ", "")).removesuffix("[rank3]: "),
        "KeyError: 41\n",
        "2026-03-02 09:14:22,871 ERROR pool.py:88 -- The pool is gone, the worker exits: Broken pipe\n",
        UNCAUGHT.replace("KeyError: 41", "ModuleNotFoundError: No module named 'fast_norm'"),
        "ImportError: libfast.so: cannot open shared object file: No such file or directory\n",
        "╭─ Error ─────────────────────────╮\n│ Missing option '--model'.       │\n╰─────────────────────────────────╯\n",
        'Traceback (most recent call last):\n  File "/srv/job/solution.py", line 3, in <module>\n    print(x)\nNameError: x\n',
        'WARNING auth: none\nTraceback (most recent call last):\n  File "<frozen os>", line 225, in makedirs\nPermissionError: [Errno 13] x\n',
        CAUGHT.replace("in fetch", "in main").replace("KeyError: 41", "FileNotFoundError: [Errno 2] No such file or directory: 'a'"),
        RECORD + CAUGHT.replace("KeyError: 41", "RuntimeError: CUDA error: an illegal memory access was encountered"),
        "!!!!!!! Segfault encountered !!!!!!!\n",
        "numactl: This system does not support NUMA policy\n",
        "train.py: error: unrecognized arguments: --lrr\n",
        "slurmstepd: error: *** STEP 812.0 ON gpu-3 CANCELLED AT 2026-11-23T08:41:10 DUE TO NODE gpu-3 FAILURE ***\n",
    ],
)
def test_what_says_that_something_ended_is_a_failure(tmp_path: Path, end: str) -> None:
    assert told(tmp_path, end)[0] == "first"


def test_the_words_of_the_record_count_and_those_of_the_code_do_not(tmp_path: Path) -> None:
    head = "(Worker_TP1 pid=991) ERROR 08-14 08:15:12 [executor.py:671] "
    raised = "".join(f"{head}{row}\n" for row in CAUGHT.splitlines())
    assert told(tmp_path, f"{head}The loop of this worker has died\n{raised}")[0] == "first"
    assert told(tmp_path, f"{head}The cache has no entry\n{raised}")[0] == "noted"
    assert told(tmp_path, RECORD + CAUGHT.replace("return table[key]", "raise KeyError('fatal')"))[0] == "noted"


def test_where_anything_ended_the_error_before_it_is_the_first_failure(tmp_path: Path) -> None:
    ended = "2026-03-02 09:14:23,100 ERROR launch.py:12 -- rank 3 exited with exit code 1\n"
    assert told(tmp_path, RECORD + ended) == ("first", "The cache has no entry")


def test_where_work_stops_at_an_error_one_log_alone_does_not_say_that_it_stopped_by_it(tmp_path: Path) -> None:
    work = "".join(f"2026-03-02 09:{minute}:00,000 INFO trainer.py:9 -- step {minute} loss 0.2\n" for minute in (10, 11, 12))
    assert told(tmp_path, work + RECORD)[0] == "noted"
    after = "2026-03-02 09:15:00,000 INFO trainer.py:9 -- step 13 loss 0.2\n"
    story = report_on(tmp_path, work + RECORD + after).story
    assert story is not None and story.first is None and story.noted == () and len(story.survived) == 1


def test_the_texts_list_it_with_its_process_and_place(tmp_path: Path) -> None:
    report = report_on(tmp_path, f"(RewardWorker pid=70, ip=10.0.0.4) {RECORD}")
    shown = "\n".join(render_terminal(report, width=200, colour=False))
    assert "logged as an error, perhaps a failure" in shown and "RewardWorker pid 70" in shown and "out.txt:1" in shown
    assert "- logged as an error: RewardWorker pid 70" in "\n".join(render_markdown(report))


@pytest.mark.parametrize(
    "alone",
    [
        "[pool] worker 12 crashed (SIGSEGV), slot was refilled\n",
        "botocore.exceptions.ReadTimeoutError: Read timeout on endpoint URL (retry 2, sleeping 1.4 s)\n",
        "zmq.error.ContextTerminated: Context was terminated (during close)\n",
        "fault drill: worker 5 exited with code 137\n",
        "the simulator process 3 exited with code 139\n",
        "modprobe: FATAL: Module peer not found in directory /lib/modules/6.1\n",
        "2026-03-02 09:14:22,871 ERROR pool.py:88 -- transfer failed: The actor died unexpectedly before finishing this task\n",
        "2026-03-02 09:14:22,871 WARNING pool.py:88 -- not sent\n" + CAUGHT.replace("41", "Max retries exceeded with url: /rows"),
    ],
)
def test_what_its_own_line_calls_survived_accuses_nobody_when_it_stands_alone(tmp_path: Path, alone: str) -> None:
    told = story(tmp_path, alone)
    assert told is not None and told.first is None and len(told.noted) == 1


@pytest.mark.parametrize(
    "alone",
    [
        CAUGHT.replace("\n", "\n(Judge pid=70) ").join(("(Judge pid=70) ", "")).removesuffix("(Judge pid=70) "),
        "A worker died or was killed while executing a task by an unexpected system error. The actor has been restarted (1 of 3).\n",
        "asyncio.TimeoutError: rollout 81 took > 600 s, it is cancelled and sampled again\n",
        "the old engine exited with code -11 last week\n",
        "compose: container rollout-2 exited with code 137 (stopped by you)\n",
        RECORD + CAUGHT.replace("KeyError: 41", "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"),
        "2026-03-02 09:14:22,871 WARNING pool.py:88 -- Parsing failed with error: [Errno 28] No space left on device\n",
        "Error: The actor died unexpectedly before finishing this task\n",
        "Error stopping the collector: The actor died unexpectedly before finishing this task\n",
        "[pool] worker 3 was killed, no sample was lost\n",
        "KeyError                                  Traceback (most recent call last)\nCell In[4], line 1\n----> 1 f(x)\n\nKeyError: 'x'\n",
        "ERROR 11-12 08:00:01 [serving_chat.py:201] Error in preprocessing\nValueError: This model's maximum context length is 8192 tokens.\n",
    ],
)
def test_what_was_caught_mended_or_long_ago_accuses_nobody_when_it_stands_alone(tmp_path: Path, alone: str) -> None:
    told = story(tmp_path, alone)
    assert told is not None and told.first is None and told.noted


@pytest.mark.parametrize(
    "text",
    [
        "+ pkill -9 engine\n./stop.sh: line 3:   812 Killed                  python -m engine\n",
        f"Ignoring this exception with remaining max_errored_blocks=4\n{UNCAUGHT}",
        "    .. code-block:: python\n\n" + "".join(f"        {line}\n" for line in UNCAUGHT.splitlines()),
        "CRASHED = 139  # killed by signal 11\n",
        "kernel: ACPI Error: AE_NOT_FOUND, while resolving a named element\n",
        "kernel: nvme nvme0: I/O 12 QID 3 timeout, completion polled\n",
    ],
)
def test_who_was_ended_by_the_script_shown_or_passed_over_is_not_even_noted(tmp_path: Path, text: str) -> None:
    told = story(tmp_path, text)
    assert told is None or (told.first, told.noted, told.then) == (None, (), ())


@pytest.mark.parametrize(
    ("failed", "behind"),
    [
        ("docker: Error response from daemon: pull rate limit.\n", "waiting 60 s\n41: pulled\n"),
        ("ssh: connect to host n9 port 22: Connection refused\n", "n9 boots, so it takes a while\n"),
        ("Segmentation fault (core dumped)\n", "<agent> So the pointer was null.\n"),
    ],
)
def test_what_is_not_the_last_word_of_its_writer_is_noted(tmp_path: Path, failed: str, behind: str) -> None:
    told = story(tmp_path, failed + behind)
    assert told is None or told.first is None
    told = story(tmp_path, f"{failed}the job is stopped\n")
    assert told is not None and told.first is not None


@pytest.mark.parametrize("done", ["saved final model to /srv/out\n", "epoch 3/3 done\n", "[launcher] training finished\n"])
def test_what_dies_when_all_work_is_done_is_noted(tmp_path: Path, done: str) -> None:
    died = "terminate called without an active exception\n"
    told = story(tmp_path, done + died)
    assert told is None or told.first is None
    told = story(tmp_path, died)
    assert told is not None and told.first is not None


@pytest.mark.parametrize(
    "line",
    [
        "nvlink: 1 replay error on link 3 of GPU 2\n",
        "libibverbs: Warning: no driver: libvmw.so: cannot open shared object file: No such file or directory\n",
        "expected stderr: \"terminate called after throwing an instance of 'X'\"\n",
        "the next must fail\nRuntimeError: world size must be positive\npassed\n",
        "Warning  NodeNotReady  12m  node-controller  Node n4 status: NodeNotReady\nNormal   NodeReady     10m  kubelet  Node n4 status: NodeReady\n",
        "sbatch: error: Batch job submission failed: Requested node configuration is not available\nsbatch: Submitted batch job 8124\n",
        "the fused loss did not compile, eager is used:\n" + UNCAUGHT,
    ],
)
def test_a_count_a_warning_and_what_was_mended_are_no_failures(tmp_path: Path, line: str) -> None:
    told = story(tmp_path, line)
    assert told is None or (told.first, told.noted, told.then) == (None, (), ())


@pytest.mark.parametrize("line", ["{}[812]: segfault at 0 ip 00007f11 sp 00007ffc error 4 in libc.so\n", "oom_reaper: reaped process 9 ({})\n"])
def test_the_kernel_ended_a_program_that_no_run_lives_from(tmp_path: Path, line: str) -> None:
    guest, own = story(tmp_path, line.format("chrome")), story(tmp_path, line.format("python3"))
    assert guest is not None and guest.first is None and own is not None and own.first is not None


def test_that_nobody_died_is_no_death(tmp_path: Path) -> None:
    assert story(tmp_path, "no worker died in the last hour\n") is None
    assert story(tmp_path, "worker died in the last hour\n") is not None


@pytest.mark.parametrize(
    "end",
    [
        "[launcher] worker 12 crashed (SIGSEGV), stopping all\n",
        "worker 3 exited with code 1, the run cannot continue\n",
        "2026-03-02 09:14:22,871 ERROR pool.py:88 -- save failed: [Errno 28] No space left on device, exiting\n",
        "RuntimeError: batch must be even, halving it is forbidden\n",
        "ValueError: not enough values to unpack (expected 3, got 2)\n",
        'Warning  Failed  12s  kubelet  Error: secret "hf" not found\n',
    ],
)
def test_a_second_clause_that_tells_of_an_end_leaves_no_doubt(tmp_path: Path, end: str) -> None:
    assert told(tmp_path, end)[0] == "first"


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20 03:15:10.100 | ERROR    | pools:run:204 - container a81c exited with code 137; recorded as failed, container replaced\n",
        "2026-11-20 03:15:10 ERROR rollout: worker 12 died, slot refilled from the queue\n",
    ],
)
def test_what_came_in_its_place_is_told_behind_it(tmp_path: Path, text: str) -> None:
    report = report_on(tmp_path, text)
    assert not any(f.certainty is Certainty.LIKELY for f in report.findings) and (report.story is None or report.story.first is None)


def test_nccl_goes_on_with_another_network(tmp_path: Path) -> None:
    text = "n1:11:30 [0] misc/ibvwrap.cc:94 NCCL WARN Call to ibv_open_device failed\nn1:11:30 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.3<0>\n"
    report = report_on(tmp_path, text)
    assert report.findings == () and report.story is not None and report.story.first is None


def test_however_often_work_was_counted_a_light_error_behind_it_ended_nothing(tmp_path: Path) -> None:
    begins = "2026-03-02 09:00:00,100 INFO loop.py:3 -- episode {} begins\n"
    error = "2026-03-02 09:00:09,100 ERROR loop.py:9 -- the answer was too long\n"
    assert role(tmp_path, begins.format(12) + error) == "noted"
    assert role(tmp_path, begins.format(12) + begins.format(13) + error) == "noted"
    assert role(tmp_path, begins.format(12) + begins.format(13) + begins.format(14) + error) == "noted"
    assert role(tmp_path, error + begins.format(13)) is None


def test_a_known_error_of_one_request_ends_nothing(tmp_path: Path) -> None:
    line = "(Worker_TP5 pid=254) ERROR 12-10 03:24:54 [conn.py:410] Mooncake transfer failed{}\n"
    assert role(tmp_path, line.format(" for request cmpl-09be0283-e039")) == "noted"
    assert role(tmp_path, line.format("")) == "first"


def test_a_warning_of_what_was_raised_accuses_nobody(tmp_path: Path) -> None:
    line = "W0302 09:14:22.871000 441 torch/_dynamo/convert_frame.py:12] torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n"
    story = report_on(tmp_path, line).story
    assert story is not None and story.first is None


def test_who_ended_torchrun_ended_its_ranks(tmp_path: Path) -> None:
    line = (
        "W0302 09:14:22.871000 881 torch/distributed/elastic/agent/server/api.py:719] Received Signals.SIGINT death signal, shutting down workers\n"
    )
    report = report_on(tmp_path, line + "KeyboardInterrupt\n")
    assert report.story is not None and report.story.first is None and report.findings == ()
    assert "only that a process was told to end" in report.story.summary
