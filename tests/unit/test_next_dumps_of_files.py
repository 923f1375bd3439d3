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
    assert "pgrep -f python" in report.next_dumps[0].command


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
