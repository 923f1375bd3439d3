"""A few lines pasted alone, with no running job around them: what says in them that somebody ended, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_log_innocents import story

from ray_rl_debug.logs.heads import read_head

RAISED = 'Traceback (most recent call last):\n  File "/job/parser.py", line 92, in extract\n    at = text.index(part)\nValueError: no such part\n'
BODY = RAISED.replace("in extract", "in main")
"""So begins what the program's own body raised, cut above."""
LEFT = 'Traceback (most recent call last):\n  File "/job/train.py", line 9, in <module>\n    main()\nValueError: no such part\n'


def role(folder: Path, text: str) -> str | None:
    """``first``, ``noted``, ``told``, or None where nothing is told."""
    told = story(folder, text)
    if told is None:
        return None
    return "first" if told.first is not None else "noted" if told.noted else "told" if told.then else None


@pytest.mark.parametrize("said", ["Error trying to read a streamed call.", "Failed to parse the answer:", "An exception in the judge (ignored part)"])
def test_a_sentence_above_a_caught_traceback_says_that_it_was_printed(tmp_path: Path, said: str) -> None:
    assert role(tmp_path, f"{said}\n{RAISED}") == "noted"
    assert role(tmp_path, f"{said}\n{LEFT}") == "first"
    assert role(tmp_path, f"(Judge pid=7) {said}\n{BODY}") == "first"


def test_a_sentence_above_that_tells_of_an_end_counts(tmp_path: Path) -> None:
    assert role(tmp_path, f"Error executing job with overrides: ['a.b=3']\n{RAISED}") == "first"
    assert role(tmp_path, f"Error in the main loop, exiting.\n{RAISED}") == "first"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Batch size 128 failed: CUDA out of memory. Tried to allocate 2.00 GiB.", "noted"),
        ("CUDA out of memory. Tried to allocate 2.00 GiB.", "first"),
        ("The old job was slow because RuntimeError: CUDA out of memory came at each step", "noted"),
        ("Error: failed to create task: OCI runtime create failed: runc create failed: unable to start container process", "first"),
        ("Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.", "first"),
    ],
)
def test_a_known_error_as_the_reason_within_a_sentence_is_noted(tmp_path: Path, line: str, expected: str) -> None:
    assert role(tmp_path, f"{line}\n") == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2026-03-02 09:14:22,871 ERROR store.py:88 -- REMOVE error: CUDA out of memory. Tried to allocate 2.00 GiB", "noted"),
        ("2026-03-02 09:14:22,871 ERROR mesh.py:88 -- mesh.stop[[Errno 28] No space left on device] failed", "noted"),
        ("❌ Error: [Errno 28] No space left on device", "noted"),
        ("Error:Connection refused", "noted"),
        ("(RewardWorker pid=812) Error: [Errno 28] No space left on device", "noted"),
        ("(RewardWorker pid=812) OSError: [Errno 28] No space left on device", "first"),
        ("[pool-3] exception: [Errno 28] No space left on device", "noted"),
        ("2026-03-02 09:14:22,871 ERROR store.py:88 -- CUDA out of memory. Tried to allocate 2.00 GiB", "first"),
        ("pcieport 0000:40:01.1: AER: Uncorrected (Fatal) error received: 0000:41:00.0", "first"),
        ("INFO 05-22 09:00:01 [worker.py:88] (pid 4411) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB", "first"),
    ],
)
def test_one_word_in_front_of_a_known_error_makes_a_sentence_of_it(tmp_path: Path, line: str, expected: str) -> None:
    assert role(tmp_path, f"{line}\n") == expected


IN_THREAD = (
    "Exception in thread Pusher:\nTraceback (most recent call last):\n"
    '  File "/usr/lib/python3.11/threading.py", line 1045, in _bootstrap_inner\n    self.run()\n'
    '  File "/opt/env/lib/python3.11/site-packages/{}", line 41, in push\n    send(row)\nValueError: no such part\n'
)


def test_a_thread_of_a_library_that_only_reports_ends_alone(tmp_path: Path) -> None:
    assert role(tmp_path, IN_THREAD.format("statpush/client.py")) == "noted"
    assert role(tmp_path, IN_THREAD.format("vllm/engine/output.py")) == "first"
    own = IN_THREAD.format("statpush/client.py").replace("    send(row)", '    cb()\n  File "/job/sync.py", line 4, in cb')
    assert role(tmp_path, own) == "first"
    assert role(tmp_path, IN_THREAD.format("statpush/client.py") + "The pusher is gone, giving up\n") == "first"


def test_code_that_python_reads_from_somebody_ends_nothing_that_is_known(tmp_path: Path) -> None:
    tried = 'Traceback (most recent call last):\n  File "<stdin>", line 3, in <module>\nValueError: no such part\n'
    assert role(tmp_path, tried) == "noted"
    marked = "".join(f"(Judge pid=7) {line}\n" for line in tried.splitlines())
    assert role(tmp_path, marked) == "first"


def test_the_record_of_an_exception_says_what_is_done_about_it(tmp_path: Path) -> None:
    record = "2026-03-02 09:14:22,871 ERROR executor.py:480 -- A block could not be read{}\nUnicodeDecodeError: invalid start byte\n"
    assert role(tmp_path, record.format(". Ignoring it, 7 more may fail.")) is None
    chained = record.replace("UnicodeDecodeError", "ray.exceptions.RayTaskError(UnicodeDecodeError): ray::Map()\nUnicodeDecodeError")
    assert role(tmp_path, chained.format(". Ignoring it, 7 more may fail.")) is None
    assert role(tmp_path, record.format("")) == "first"


@pytest.mark.parametrize(
    "line",
    [
        "2026-03-02 09:14:22,871 [ERROR] (Process-80 agents.trainer) Runner process 2 (pid 991) exited with code 1, stopping all",
        "flux-job: task(s) exited with exit code 137",
        "error: creating server: Internal - failed to load all models",
        "1:M 02 Mar 2026 09:14:22.871 # Redis 7.2.4 crashed by signal: 11, si_code: 1",
        '2026-03-02 09:14:22.871 UTC [44] PANIC:  could not write to file "pg_wal/xlogtemp.44": No space left on device',
        'job 81 exceeded job hard limit "h_rt" of queue "gpu.q@gpu3" (86412.0 > limit:86400.0) - sending SIGKILL',
    ],
)
def test_forms_of_an_end(tmp_path: Path, line: str) -> None:
    assert role(tmp_path, f"{line}\n") == "first"


def test_the_name_of_a_software_in_front_of_a_stamp_hides_no_level() -> None:
    plain = "20260302-09:14:22.871 RolloutController ERROR: no server"
    assert read_head(f"(AReaL) {plain}") == read_head(plain)
    assert read_head(f"(Trainer pid=7) (AReaL) {plain}").level == "E"
    assert read_head("(raylet) 2026-03-02 09:14:22,871 x").writer.program == "raylet"


def test_output_that_an_error_quotes_is_not_what_its_process_wrote_next(tmp_path: Path) -> None:
    quoted = "Stderr output:\n20260302-09:14:22.871 PPOActor INFO: Training Parameters\n20260302-09:14:22.872 PPOActor INFO: Mode\n"
    assert role(tmp_path, f"{RAISED.replace('in extract', 'in main')}{quoted}") == "first"


def test_a_warning_that_a_peer_has_gone_tells_of_no_failure(tmp_path: Path) -> None:
    line = '[rank1]:[{}614 11:14:03.086 ProcessGroupNCCL.cpp:1662] Failed to check the "should dump" flag on TCPStore, Broken pipe\n'
    assert role(tmp_path, line.format("W")) == "noted"
    assert role(tmp_path, line.format("E")) == "first"


@pytest.mark.parametrize(
    "line",
    [
        'train.py:88:            raise RuntimeError("worker died with exit code 1")',
        "launch.sh-12-    # Killed by the OOM killer when the batch is too large",
        "fatal_signals: [SIGSEGV, SIGBUS]",
        "nvidia-smi exited with code 9, GPU metrics are disabled",
        "[sandbox] case 3: Segmentation fault (core dumped), verdict RE",
        "/opt/env/profile.sh: line 12: warning: setlocale: LC_ALL: cannot change locale (en_US.UTF-8): No such file or directory",
    ],
)
def test_code_lists_and_judged_programs_tell_of_no_failure(tmp_path: Path, line: str) -> None:
    assert role(tmp_path, f"{line}\n") is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("RuntimeError: INTERNAL: Core halted: No error message available", "first"),
        ("slurmstepd: error: Caught panic while running a callback: the lock is poisoned", "noted"),
        ("cuFileDriverOpen error: nvidia-fs driver is not loaded", "noted"),
        ("fatal_signal: SIGBUS", "first"),
        ("sbatch: error: Job 81 requeued in held state", "first"),
        ("train.py:88: RuntimeError: worker died with exit code 1", "first"),
    ],
)
def test_what_only_looks_like_these_is_told(tmp_path: Path, line: str, expected: str) -> None:
    assert role(tmp_path, f"{line}\n") == expected


def test_a_volume_that_was_mounted_at_last_held_nobody_up(tmp_path: Path) -> None:
    failed = 'Warning  FailedMount  4m  kubelet  MountVolume.SetUp failed for volume "token" : timed out waiting for the condition\n'
    assert role(tmp_path, failed) == "first"
    assert role(tmp_path, f"{failed}Normal   Started      3m  kubelet  Started container trainer\n") is None


def test_a_server_that_starts_again_behind_its_end_was_survived(tmp_path: Path) -> None:
    ended = "reward-1 exited with code 137\n"
    assert role(tmp_path, ended) == "first"
    assert role(tmp_path, f"{ended}reward-1  | INFO:     Application startup complete.\n") is None


@pytest.mark.parametrize("how", ["exit code: -15", "exitcode=143", "signal 15"])
def test_a_process_that_was_told_to_end_did_not_fail(tmp_path: Path, how: str) -> None:
    told = story(tmp_path, f"Worker process pid 26460 died, {how}\n")
    assert told is not None and told.first is None and told.noted == ()
    assert [e.who[0].pid for e in told.then] == [26460]
    assert told.summary.startswith("these logs show only that a process was told to end, not by whom: ")


@pytest.mark.parametrize("line", ["multiprocessing worker (pid 912) was terminated by signal 11", "rank 5 exited with code -9, terminating the rest"])
def test_an_own_signal_or_code_is_nobody_elses_word(tmp_path: Path, line: str) -> None:
    told = story(tmp_path, f"{line}\n")
    assert told is not None and told.first is not None and not told.first.is_echo


def test_a_process_that_ends_itself_was_not_told_to(tmp_path: Path) -> None:
    told = story(tmp_path, "[rank3]:[F1121 10:00:00.123 ProcessGroupNCCL.cpp:1557] Terminating the process after a hang of the watchdog.\n")
    assert told is not None and told.first is not None and not told.first.is_echo


@pytest.mark.parametrize(
    ("line", "pid", "text"),
    [
        ("[ERROR] HCCL(2717,python3):2026-07-23-03:47:57.070.463 [socket.cc:100] [Listen] fail", 2717, "fail"),
        ("2026-11-11 08:02:15.854222 ERROR    [924] [client.hpp:954] no answer", 924, "no answer"),
        ("2026-11-11 08:02:15.854222 ERROR    [924] answers are missing", None, "answers are missing"),
    ],
)
def test_processes_by_the_marks_of_cann_and_of_threads_in_brackets(line: str, pid: int | None, text: str) -> None:
    head = read_head(line)
    assert (head.writer.pid, head.level, head.text) == (pid, "E", text)


def test_what_another_process_raised_first_is_told_beneath(tmp_path: Path) -> None:
    again = LEFT.replace("ValueError: no such part", "ValueError: Caught ValueError in DataLoader worker process 3.")
    worker = RAISED.replace("Traceback", "Original Traceback")
    told = story(tmp_path, f"{again}{worker}")
    assert told is not None and told.first is not None and told.then == ()
    assert (told.first.text, told.first.beneath) == ("ValueError: Caught ValueError in DataLoader worker process 3.", "ValueError: no such part")
    assert told.first.frame == "parser.py:92 in extract"


def test_what_a_librarys_result_means_belongs_to_the_exception_above(tmp_path: Path) -> None:
    raised = "[rank2]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:317, unhandled system error, NCCL version 2.21.5\n"
    means = "[rank{}]: ncclSystemError: System call or external library call failed or device error.\n"
    told = story(tmp_path, raised + means.format(2))
    assert told is not None and told.first is not None and told.then == ()
    assert told.first.signature == "RRD639"
    told = story(tmp_path, raised + means.format(3))
    assert told is not None and told.first is not None and len(told.then) == 1


def test_the_last_word_of_ray_on_a_job_is_a_failure(tmp_path: Path) -> None:
    assert role(tmp_path, "2026-10-08 10:00:01,112\tERR cli.py:68 -- Job 'raysubmit_ab12' failed\n") == "first"
    assert role(tmp_path, "2026-10-08 10:00:01,112\tERR cli.py:68 -- Job 'raysubmit_ab12' has no log\n") == "noted"


def test_a_sub_command_that_refuses_its_arguments(tmp_path: Path) -> None:
    told = story(tmp_path, "vllm serve: error: argument --port: expected one argument\n")
    assert told is not None and told.first is not None and told.first.signature == "RRD6292"


def test_what_an_agent_was_shown_in_a_step_is_no_failure(tmp_path: Path) -> None:
    assert role(tmp_path, f"Step 3 observation: {RAISED}Step 4 action: open parser.py\n") is None
    assert role(tmp_path, f"Step 3 failed: {LEFT}") == "first"


def test_who_pressed_a_key_is_in_no_log(tmp_path: Path) -> None:
    assert role(tmp_path, LEFT.replace("ValueError: no such part", "KeyboardInterrupt")) == "told"
    assert role(tmp_path, "KeyboardInterrupt\n" + LEFT) == "first"
