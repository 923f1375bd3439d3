"""What one stack of an excerpt tells of its cause: native calls of NCCL, locks of libraries, pauses of clients, kernel stacks, listings."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Cause, Certainty, Report

DRIVER = "".join(f"#{n}  0x00007fec9b630c50 in ?? () from /lib/libcuda.so.1\n" for n in range(8))


def told(tmp_path: Path, text: str) -> Report:
    file = tmp_path / "post.txt"
    file.write_text(text)
    snapshot = load([file]).snapshot
    assert snapshot is not None
    return diagnose(snapshot)


NCCL = {
    "in a launch": ("#8  0x7f in ncclLaunchKernel(ncclComm*) () \n#9  0x7f in ncclGroupEnd () from /opt/libnccl.so.2\n", "collective-stalled"),
    "making a communicator": (
        "#8  0x7f in pncclCommInitRankConfig () from /lib/libnccl.so.2\n#9  0x7f in c10d::ProcessGroupNCCL::recv() () from /opt/libtorch_cuda.so\n",
        "init-deadlock",
    ),
    "giving one up": (
        "#8  0x7f in cudaStreamSynchronize () from /opt/libcudart.so.11.0\n#9  0x7f in ncclCommAbort (comm=0x5) at init.cc:1508\n",
        "cleanup-deadlock",
    ),
}


@pytest.mark.parametrize("name", NCCL)
def test_native_calls_of_nccl(tmp_path: Path, name: str):
    frames, cause = NCCL[name]
    report = told(tmp_path, f"it hangs\n\n{DRIVER}{frames}")
    assert (report.findings[0].cause.value, report.findings[0].certainty) == (cause, Certainty.POSSIBLE)
    assert not any("?? (" in e.text for e in report.findings[0].evidence)


def test_the_watchdog_of_torch_is_no_wait_for_ranks(tmp_path: Path):
    text = (
        "#0  0x7f in poll () from /lib/libc.so.6\n#1  0x7f in c10d::TCPStore::get(std::string const&) () from /opt/libtorch_cpu.so\n"
        "#2  0x7f in c10d::ProcessGroupNCCL::ncclCommWatchdog() () from /opt/libtorch_cuda.so\n"
    )
    assert not told(tmp_path, f"look:\n{text}").findings


def test_a_lock_that_a_handler_wants_below_what_it_interrupted(tmp_path: Path):
    text = (
        "#0  0x2b in sem_wait () from /lib/libpthread.so.0\n#1  0x4f in find_key (key=1) at Python/thread.c:268\n"
        "#2  0x2b in sigprof_handler (sig_nr=27) at src/vmprof_main.h:170\n#3  <signal handler called>\n"
        "#4  PyThread_release_lock (lock=0x17) at Python/thread_pthread.h:342\n#5  0x4f in find_key (key=1) at Python/thread.c:296\n"
    )
    first = told(tmp_path, text).findings[0]
    assert first.cause.value == "lock-deadlock"
    assert "handler of a signal" in first.summary


def test_a_pause_before_a_request_is_tried_again_waits_for_its_service(tmp_path: Path):
    text = (
        'Thread 531 (idle): "MainThread"\n    wait (threading.py:324)\n    wait (threading.py:607)\n'
        "    _sleep_check_cancelled (wandb/sdk/lib/retry.py:89)\n    __call__ (wandb/sdk/lib/retry.py:194)\n"
        "    log (train.py:9)\n    <module> (train.py:20)\n"
    )
    first = told(tmp_path, text).findings[0]
    assert (first.cause.value, first.certainty) == ("blocked-io", Certainty.POSSIBLE)
    assert "tries a failed request again" in first.summary


def test_an_iterator_over_data_that_waits_at_a_queue(tmp_path: Path):
    text = (
        'Rank 0:\nThread 0x7FA6 (idle): "MainThread"\n    wait (threading.py:302)\n    get (queue.py:170)\n'
        "    __next__ (fair/data/iterators.py:648)\n"
        "    train (fair/train.py:274)\n    <module> (fair/train.py:300)\n"
    )
    assert told(tmp_path, text).findings[0].cause.value == "dataloader-stuck"
    assert told(tmp_path, text.replace("fair/data/iterators.py", "fair/rollouts/stream.py")).findings[0].cause.value == "lock-deadlock"


def test_who_waits_for_the_lock_of_a_log_is_not_idle(tmp_path: Path):
    text = (
        "Thread 1 (Thread 0x7f9a (LWP 13663)):\nTraceback (most recent call first):\n"
        "  <built-in method acquire of _thread.RLock object at remote 0x7f9a>\n"
        '  File "/usr/lib/python3.5/logging/__init__.py", line 804, in acquire\n'
        '    self.lock.acquire()\n  File "/usr/lib/python3.5/logging/__init__.py", line 853, in handle\n    self.acquire()\n'
    )
    assert told(tmp_path, text).findings[0].cause.value == "lock-deadlock"


def test_a_kernel_stack_without_what_older_calls_left(tmp_path: Path):
    text = (
        "$ sudo cat /proc/32733/stack\n[<ffffffffb3839bd0>] SyS_tee+0x3a0/0x3a0\n[<ffffffffb383197e>] wb_wait_for_completion+0x5e/0x90\n"
        "[<ffffffffb38338ca>] sync_inodes_sb+0xaa/0x280\n[<ffffffffb3839f32>] sys_sync+0x42/0xb0\n"
    )
    first = told(tmp_path, text).findings[0]
    assert first.cause.value == "blocked-io"
    assert "SyS_tee" not in str(first)


def test_programs_that_a_listing_shows_defunct(tmp_path: Path):
    text = (
        "USER       PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n"
        "user+        1 24.8  4.4 91509 29199 ?    Ssl  14:25  13:01 python -m run\n"
        "user+       58 51.7  0.0      0     0 ?        Z    14:27  26:20 [python] <defunct>\n"
        "user+       60 52.0  2.4 91147 16046 ?    Sl   14:27  26:31 python -m run\n"
    )
    first = told(tmp_path, text).findings[0]
    assert (first.cause.value, first.certainty, [w.pid for w in first.who]) == ("rank-died", Certainty.POSSIBLE, [58])
    assert "title says" not in str(first.evidence)


def test_a_rank_of_which_nobody_gave_a_stack_is_not_said_to_have_died(tmp_path: Path):
    text = (
        'Process 88693: sglang::scheduler_PP2_TP1\nPython v3.12.3\n\nThread 88693 (idle): "MainThread"\n    pthread_cond_timedwait (libc.so.6)\n'
        "    gloo::transport::tcp::UnboundBuffer::waitRecv (libtorch_cpu.so)\n    c10d::ProcessGroupGloo::RecvWork::wait (libtorch_cpu.so)\n"
    )
    report = told(tmp_path, text)
    assert all(f.cause.value != "rank-died" for f in report.findings)
    assert report.next_dumps


def test_an_exception_of_torch_is_no_look_at_a_straggler(tmp_path: Path):
    text = (
        "Exception raised from ncclCommWatchdog at ProcessGroupNCCL.cpp:1901 (most recent call first):\n"
        "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7fb35b195206 in /opt/torch/lib/libc10.so)\n"
        "frame #1: <unknown function> + 0xc28dae (0x7fb304228dae in /opt/torch/lib/libtorch_cuda.so)\n\nFatal Python error: Aborted\n\n"
        'Thread 0x00007fa0f51fd640 (most recent call first):\n  File "/opt/lib/python3.10/threading.py", line 324 in wait\n'
        '  File "/opt/lib/python3.10/site-packages/tqdm/_monitor.py", line 60 in run\n'
    )
    assert all(f.cause.value != "straggler" for f in told(tmp_path, text).findings)


def test_logs_of_a_failure_say_what_to_look_at_next(tmp_path: Path):
    text = "[rank118]:[E603 17:48:01.005560740 ProcessGroupNCCL.cpp:670] Some other failure of this rank: broken pipe of the store\n" * 2
    report = told(tmp_path, text)
    assert report.next_dumps
    assert "ray::" in report.next_dumps[0].command


FOREST = """    PID COMMAND
   2780 slurm_script
   2791  \\_ python3.11
   2816      \\_ python3.11
   2834          \\_ python3.11 <defunct>
   2835          \\_ python3.11
   2836          \\_ python3.11 <defunct>
"""
LAUNCHER = """Thread 2816 (idle): "MainThread"
    _poll (multiprocessing/popen_fork.py:27)
    _join_procs (torch/multiprocessing/spawn.py:112)
    _monitor_workers (torch/distributed/elastic/agent/server/local_elastic_agent.py:200)
    _invoke_run (torch/distributed/elastic/agent/server/api.py:865)
    <module> (torch/distributed/run.py:810)
"""
RANK = """Thread 2835 (active): "MainThread"
    {0}train_epoch (engine.py:345)
    <module> (rnn.py:11)
"""


def test_ranks_that_ended_below_a_launcher_are_named_beside_the_one_that_waits(tmp_path: Path):
    rank = RANK.format("all_reduce (torch/distributed/distributed_c10d.py:2050)\n    ")
    report = told(tmp_path, f"```\n{FOREST}```\n```\n{LAUNCHER}```\n```\n{rank}```\n")
    first = report.findings[0]
    assert (first.cause, [w.pid for w in first.who]) == (Cause.RANK_DIED, [2834, 2836])
    assert "3 more live" in first.summary
    assert report.next_dumps[0].command.startswith("sudo dmesg")


def test_what_only_a_listing_shows_is_not_called_idle(tmp_path: Path):
    report = told(tmp_path, f"```\n{FOREST}```\n```\n{LAUNCHER}```\n```\n{RANK.format('')}```\n")
    said = [link.evidence for f in report.findings for link in f.chain]
    assert [t for t in said if "is not idle" in t] == ["of 2 processes with stacks only python3.11 (pid 2835) is not idle"]
