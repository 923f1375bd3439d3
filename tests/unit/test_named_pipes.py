"""Opening a named pipe waits for whoever opens its other end: the report says so, and does not send anybody to look at a mount."""

from __future__ import annotations

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Finding
from tests.unit.scenes import Stacks, process, snapshot

OPENAT = 257
READS = "read_prompts@/job/prompts.py:12 <module>@/job/prompts.py:30"


def finding(wchan: str) -> Finding:
    stacks = Stacks()
    reads = process(stacks, 200, "python prompts.py", READS, kind="named", wchan=wchan, syscall=OPENAT)
    return diagnose(snapshot(stacks.node([reads]))).findings[0]


@pytest.mark.parametrize("wchan", ["wait_for_partner", "fifo_open", "wait_for_partner.constprop.0"])
def test_a_named_pipe_is_told(wchan: str) -> None:
    told = finding(wchan)
    assert told.id == "RRD502"
    assert any("it opens a named pipe, and nobody has its other end open" in e.text for e in told.evidence)
    assert not any("mount" in line for line in told.remedy)


def test_a_file_of_a_mount_is_none() -> None:
    told = finding("fuse_request_wait")
    assert told.id == "RRD502"
    assert not any("named pipe" in e.text for e in told.evidence)
    assert any("mount" in line for line in told.remedy)
