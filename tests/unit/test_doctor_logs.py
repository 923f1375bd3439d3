"""`doctor --logs` accuses nobody of what the run survived, or only logged."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.imports.doctor_logs import check_logs

STEP = "2026-03-02 09:{m}:00,000 INFO trainer.py:9 -- step {m} loss 0.2\n"
CUDA = "(Worker pid=7) RuntimeError: CUDA error: an illegal memory access was encountered\n"
MISSING = "Failed to import from vllm.vllm_flash_attn: No module named 'vllm.vllm_flash_attn'\n"


def known(folder: Path, text: str) -> list[str]:
    (folder / "out.log").write_text(text)
    (node,) = check_logs([folder]).nodes
    return [line.signature for line in node.log_lines or ()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STEP.format(m=10) + CUDA, ["RRD660"]),
        (STEP.format(m=10) + CUDA + STEP.format(m=11) + STEP.format(m=12) + STEP.format(m=13), []),
        (MISSING, []),
        (MISSING + CUDA, ["RRD6181", "RRD660"]),
        ("(Worker pid=7) ImportError: flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda\n", ["RRD6181"]),
    ],
)
def test_only_what_ended_something_is_a_fault(tmp_path: Path, text: str, said: list[str]) -> None:
    assert known(tmp_path, text) == said
