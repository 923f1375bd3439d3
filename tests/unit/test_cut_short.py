"""Which waits a stop would end early."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.collect.cut_short import is_cut_short

REST = "0x7f00 0x20 0x0 0x0 0x0 0x7ffe 0x7f01"


@pytest.mark.parametrize(
    ("machine", "text", "expected"),
    [
        ("x86_64", f"1 0x1 {REST}", True),  # write
        ("x86_64", f"0 0x1 {REST}", False),  # read
        ("x86_64", f"202 0x7f {REST}", False),  # futex
        ("x86_64", f"44 0x3 {REST}", True),  # sendto
        ("x86_64", f"65 0x3 {REST}", True),  # semop
        ("x86_64", f"45 0x3 {REST}", False),  # recvfrom
        ("x86_64", "45 0x3 0x7f00 0x20 0x100 0x0 0x0 0x7ffe 0x7f01", True),  # recvfrom, MSG_WAITALL
        ("x86_64", "47 0x3 0x7f00 0x4100 0x0 0x0 0x0 0x7ffe 0x7f01", True),  # recvmsg, MSG_WAITALL
        ("aarch64", f"64 0x1 {REST}", True),
        ("aarch64", f"1 0x1 {REST}", False),
        ("x86_64", "running", False),
        ("x86_64", "-1 0x7ffe 0x7f01", False),
    ],
)
def test_the_call_and_its_flags_tell(tmp_path: Path, machine: str, text: str, expected: bool) -> None:
    for tid, call in ((7, "running"), (8, text)):
        folder = tmp_path / "7" / "task" / str(tid)
        folder.mkdir(parents=True)
        (folder / "syscall").write_text(call + "\n")
    assert is_cut_short(7, tmp_path, machine=machine) == expected


def test_a_process_that_is_gone_waits_for_nothing(tmp_path: Path) -> None:
    assert not is_cut_short(7, tmp_path)
