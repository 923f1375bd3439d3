"""What to dump next, where files hold no stack that tells: refused tools, parts of engines, ranks that waited in vain."""

from __future__ import annotations

from pathlib import Path

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Certainty, Report

TIMEOUT = (
    "[rank{0}]:[E901 05:20:03.118859045 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=46, "
    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n"
)
REFUSED = "py-spy dump --pid {0}\nError: Failed to suspend process\nReason: EPERM: Operation not permitted\n"
CORE = """Process 1455: VLLM::EngineCore
Thread 1455 (active): "MainThread"
    acquire_read (vllm/distributed/device_communicators/shm_broadcast.py:490)
    dequeue (vllm/distributed/device_communicators/shm_broadcast.py:560)
    get_response (vllm/v1/executor/multiproc_executor.py:250)
    step (vllm/v1/engine/core.py:290)
    run_engine_core (vllm/v1/engine/core.py:690)
"""


def _report(folder: Path, text: str) -> Report:
    (folder / "post.log").write_text(text)
    snapshot = load([folder / "post.log"]).snapshot
    assert snapshot is not None
    return diagnose(snapshot)


def test_who_waited_in_vain_is_a_victim(tmp_path: Path) -> None:
    report = _report(tmp_path, TIMEOUT.format(6) + TIMEOUT.format(2))
    first = report.findings[0]
    assert first.certainty is Certainty.POSSIBLE
    assert [w.label for w in first.who] == ["a rank that did not come"]
    assert {w.label for w in first.victims} == {"rank 6", "rank 2"}
    assert "pgrep -f 'python|ray::" in report.next_dumps[0].command


def test_a_tool_that_was_refused_everywhere_needs_rights(tmp_path: Path) -> None:
    report = _report(tmp_path, REFUSED.format(4001) + REFUSED.format(4002))
    assert report.next_dumps[0].command == "for pid in 4001 4002; do sudo py-spy dump --pid $pid; done"
    assert "SYS_PTRACE" in report.next_dumps[0].why


def test_what_a_dumping_tool_says_is_no_failure_of_the_job(tmp_path: Path) -> None:
    text = "2026-08-04 11:58:42 Pyspy failed to dump PID 1188. Error: Failed to copy Py_Version symbol\nReason: Permission denied (os error 13)\n"
    report = _report(tmp_path, text)
    assert report.findings == ()


def test_an_engine_core_waits_for_its_workers(tmp_path: Path) -> None:
    first = _report(tmp_path, CORE).next_dumps[0]
    assert first.what.startswith("vLLM worker, vLLM server in the engine of pid 1455")
    assert "VLLM::" in first.command


DESYNC = """[rank0]:[E1101 08:12:40.118 ProcessGroupNCCL.cpp:1834] [PG 0 Rank 0]
   - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:
     - [2] finished collective #4119, but didn't join collective #4120 (count from 1)
"""


def test_a_rank_that_the_log_names_is_the_one_to_dump(tmp_path: Path) -> None:
    report = _report(tmp_path, DESYNC)
    assert [w.rank for w in report.findings[0].who] == [2]
    assert report.next_dumps[0].what == "rank 2, while the others wait"


def test_all_ranks_that_did_not_pass_a_barrier_are_named(tmp_path: Path) -> None:
    report = _report(tmp_path, "[rank0]: RuntimeError: Ranks 5, 11 failed to pass monitoredBarrier in 1200000 ms\n")
    assert [w.rank for w in report.findings[0].who] == [5, 11]


RAS = """Job summary
===========

Communicators... (0.00s)
=============

Warnings
========

#0-0 (9ab1c0ddf1e2a7b4) MISMATCH
  Communicator ranks have different AllGather operation counts
  30 ranks have launched up to operation 911
  2 ranks have launched up to operation 912
  Rank 20 -- GPU 4 managed by process 551032 on node 10.2.0.24
  Rank 21 -- GPU 5 managed by process 551033 on node 10.2.0.24
"""


def test_few_that_are_ahead_are_not_to_blame(tmp_path: Path) -> None:
    report = _report(tmp_path, RAS)
    assert not report.findings
    assert report.next_dumps[0].what.startswith("the 30 ranks that are behind, such as rank 0")


def test_ranks_in_two_collectives_are_not_asked_to_be_in_one(tmp_path: Path) -> None:
    text = "".join(
        f'rank {rank}\nThread {rank + 10} (active): "MainThread"\n    {op} (torch/distributed/distributed_c10d.py:9)\n    {f} (train.py:{rank})\n\n'
        for rank, op, f in ((0, "all_reduce", "loss"), (1, "all_gather", "gather"))
    )
    outcomes = next(d.outcomes for d in _report(tmp_path, text).next_dumps if "every node" in d.what)
    assert [o.seen for o in outcomes][:2] == ["one of them is not in all_gather or all_reduce", "all are in all_gather or all_reduce"]


FORKED = """Thread 7311 (idle): "MainThread"
    select (selectors.py:415)
    wait (multiprocessing/connection.py:1136)
    poll (multiprocessing/connection.py:257)
    get (multiprocessing/queues.py:113)
    _worker_loop (torch/utils/data/_utils/worker.py:287)
    run (multiprocessing/process.py:108)
    _bootstrap (multiprocessing/process.py:314)
    _launch (multiprocessing/popen_fork.py:71)
    start (multiprocessing/process.py:121)
    __init__ (torch/utils/data/dataloader.py:1146)
    validate (app/trainer.py:212)
    fit (app/trainer.py:340)
"""


def test_who_forked_an_idle_process_gives_it_its_work(tmp_path: Path) -> None:
    report = _report(tmp_path, FORKED)
    assert "the parent that started it, in validate (app/trainer.py:212)" in report.verdict.summary
    assert report.next_dumps[0].command == "py-spy dump --pid $(ps -o ppid= -p 7311)"


def test_an_idle_worker_of_ray_has_no_parent_to_dump(tmp_path: Path) -> None:
    idle = 'Thread 7312 (idle): "MainThread"\n    main_loop (ray/_private/worker.py:935)\n    <module> (ray/_private/workers/default_worker.py:323)\n'
    report = _report(tmp_path, idle)
    assert "the driver" in report.verdict.summary
    assert "ps -o ppid" not in report.next_dumps[0].command
