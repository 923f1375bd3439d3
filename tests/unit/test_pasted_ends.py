"""Ends that posts show: a process that aborted is named, one that its user dumped with a signal has not ended; whose start waited too long."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Certainty, Finding

THREADS = """Thread 0x00007f2b620006c0 (most recent call first):
  File "/usr/local/lib/python3.12/ssl.py", line 1103 in read
  File "/app/client.py", line 77 in evaluate
  File "/usr/local/lib/python3.12/threading.py", line 1032 in _bootstrap

Current thread 0x00007f2b634006c0 (most recent call first):
  File "/usr/local/lib/python3.12/threading.py", line 1149 in _wait_for_tstate_lock
  File "/usr/local/lib/python3.12/threading.py", line 1133 in join
  File "/app/run.py", line 41 in <module>
"""


def roots(folder: Path, text: str) -> list[Finding]:
    (folder / "post.md").write_text(text)
    snapshot = load([folder / "post.md"]).snapshot
    assert snapshot is not None
    return [f for f in diagnose(snapshot).findings if f.root]


def test_a_process_that_aborted_may_be_why_the_others_wait(tmp_path: Path) -> None:
    text = "\n".join(f"(PolicyWorker[rank=8] pid=3294, ip=10.0.0.2) {line}" for line in ["Fatal Python error: Aborted", "", *THREADS.splitlines()])
    finding = roots(tmp_path, text)[0]
    assert (finding.cause.value, finding.certainty, finding.who[0].pid) == ("rank-died", Certainty.POSSIBLE, 3294)


def test_behind_a_watchdog_an_abort_is_what_followed(tmp_path: Path) -> None:
    watchdog = (
        "[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=91, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600020 milliseconds before timing out."
    )
    assert roots(tmp_path, f"{watchdog}\nFatal Python error: Aborted\n\n{THREADS}")[0].cause.value == "straggler"


@pytest.mark.parametrize("word", ["With `kill -ABRT`:", "kill -6 812", "I sent it SIGABRT.", "$ kill -s QUIT 812"])
def test_whom_its_user_dumped_by_a_signal_stands_where_it_was(tmp_path: Path, word: str) -> None:
    assert roots(tmp_path, f"The run stops. {word}\n```\nFatal Python error: Aborted\n\n{THREADS}```\n")[0].cause.value == "blocked-io"


def test_locks_that_somebody_tells_of_come_before_a_call_that_may_be_one(tmp_path: Path) -> None:
    text = """Main has `_io` and waits for `_meta`; the writer has `_meta` and waits for `_io`.

Thread 0x00007f0a3b7fe640 (most recent call first):
  File "/srv/job/ckpt/writer.py", line 77 in _write_shard
  File "/usr/lib/python3.11/threading.py", line 982 in run

Thread 0x00007f0a9f1c2740 (most recent call first):
  File "/srv/job/ckpt/store.py", line 120 in flush
  File "/srv/job/train.py", line 310 in <module>
"""
    assert roots(tmp_path, text)[0].cause.value == "lock-deadlock"


def test_too_many_came_to_a_store(tmp_path: Path) -> None:
    text = """Traceback (most recent call last):
  File "train.py", line 49, in main
    torch.distributed.init_process_group(backend="nccl")
  File "/opt/conda/lib/python3.7/site-packages/torch/distributed/distributed_c10d.py", line 222, in _store_based_barrier
    rank, store_key, world_size, worker_count, timeout))
RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: store_based_barrier_key:1 (world_size=8, workers=16)
"""
    finding = roots(tmp_path, text)[0]
    assert (finding.cause.value, finding.certainty) == ("init-deadlock", Certainty.POSSIBLE)


def test_a_trainer_alone_in_a_group_with_an_engine(tmp_path: Path) -> None:
    text = """Thread 5120 (active): "MainThread"
    ncclBroadcast (vllm/distributed/device_communicators/pynccl_wrapper.py:420)
    broadcast (vllm/distributed/device_communicators/pynccl.py:290)
    _sync_weights (trl/experimental/async_grpo/async_grpo_trainer.py:640)
    <module> (train.py:22)
"""
    finding = roots(tmp_path, text)[0]
    assert (finding.cause.value, finding.certainty) == ("weight-sync-mismatch", Certainty.POSSIBLE)


def test_all_have_joined_says_a_line_of_the_desync_report(tmp_path: Path) -> None:
    finding = roots(tmp_path, "Timeout at collective: _ALLGATHER_BASE, #39\n  [0,1,2,3] joined but didn't finish collective #39\n")[0]
    assert (finding.cause.value, finding.certainty) == ("collective-stalled", Certainty.POSSIBLE)
