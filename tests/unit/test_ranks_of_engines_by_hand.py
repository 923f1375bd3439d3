"""Ranks of engines in pasted stacks: who is elsewhere while the others wait for the GPU, in a step, or at one line; and what only one does."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.formats.pasted.absent import of_line
from ray_rl_debug.formats.pasted.read import read
from ray_rl_debug.imports.folder import load

LOOP = "worker_busy_loop (vllm/v1/executor/multiproc_executor.py:961)"
STEP = (
    "all_reduce (vllm/distributed/device_communicators/pynccl.py:160)",
    "forward (vllm/layers/linear.py:14)",
    "execute_model (vllm/r.py:33)",
    LOOP,
)
REST = ("dequeue (vllm/distributed/device_communicators/shm_broadcast.py:794)", LOOP)
SCHEDULER = "run_scheduler_process (sglang/srt/managers/scheduler.py:3010)"


def first(folder: Path, text: str) -> tuple[str, str, str]:
    (folder / "post.md").write_text(text)
    snapshot = load([folder / "post.md"]).snapshot
    assert snapshot is not None
    finding = next(f for f in diagnose(snapshot).findings if f.root)
    return finding.cause.value, finding.certainty.value, finding.who[0].label


def stack(head: str, *frames: str) -> str:
    return f"{head}\n```\n" + "".join(f"    {frame}\n" for frame in frames) + "```\n"


def test_a_worker_at_rest_while_the_others_are_in_a_step_has_left_it_out(tmp_path: Path) -> None:
    found = first(tmp_path, stack("rank 3:", *STEP) + stack("rank 2:", *REST))
    assert found == ("collective-mismatch", "possible", "rank/2")


def test_who_builds_a_kernel_waits_for_no_brother_at_the_gpu(tmp_path: Path) -> None:
    build = ("wait (subprocess.py:1264)", "_build (triton/runtime/build.py:70)", "run_batch (sglang/srt/managers/scheduler.py:2400)", SCHEDULER)
    gpu = ("synchronize (torch/cuda/streams.py:231)", "process_batch_result (sglang/srt/managers/scheduler.py:2490)", SCHEDULER)
    found = first(tmp_path, stack("Process 4413: sglang::scheduler_TP3", *build) + stack("Process 4410: sglang::scheduler_TP0", *gpu))
    assert found == ("blocked-io", "possible", "SGLang scheduler TP3 (pid 4413)")


def test_most_parts_at_one_line_wait_for_the_one_elsewhere(tmp_path: Path) -> None:
    most = ("__exit__ (sglang/srt/allocator.py:260)", "forward (sglang/srt/layer.py:980)", SCHEDULER)
    other = ("choose_one (flashinfer/autotuner.py:480)", "forward (sglang/srt/layer.py:975)", SCHEDULER)
    assert first(tmp_path, stack("TP0,1,3:", *most) + stack("TP2:", *other))[:2] == ("straggler", "possible")


def test_parts_that_share_a_copied_stack_are_several() -> None:
    text = 'TP0,1,3:\n```\nThread 2101 (active): "MainThread"\n    a (t.py:1)\n    b (t.py:2)\n```\n'
    assert [(d.label, d.pid) for d in read(text)] == [("TP0", 2101), ("TP1", None), ("TP3", None)]


def test_agents_that_tell_each_other_their_ranks_are_in_a_rendezvous(tmp_path: Path) -> None:
    agent = "torch/distributed/elastic/agent/server/api.py"
    frames = ("synchronize (torch/distributed/elastic/utils/store.py:64)", f"_assign_worker_ranks ({agent}:520)", f"run ({agent}:711)")
    assert first(tmp_path, stack("agent:", *frames))[:2] == ("init-deadlock", "possible")


def test_a_part_of_an_engine_that_ended_by_a_listing_alone(tmp_path: Path) -> None:
    listing = "    PID    PPID STAT COMMAND\n   1290    1200 Rl   sglang::scheduler\n   1291    1200 Z    [sglang::detoken] <defunct>\n"
    assert first(tmp_path, f"```\n{listing}```\n")[0] == "rank-died"


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("The first `if` lets them return, so only rank 0 hits `dist.barrier()`.", True),
        ("only the main process enters the gather", True),
        ("It would hang if only rank 0 called it.", False),
        ("if only rank 0 enters the barrier, all hang", False),
    ],
)
def test_what_only_one_does_the_others_have_not_come_to(text: str, is_told: bool) -> None:
    told = of_line(text)
    assert (told is not None and told.name == "the other ranks") == is_told
