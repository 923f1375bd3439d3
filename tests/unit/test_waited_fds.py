"""System calls whose arguments lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.collect.waited_fds import read_waited_fds

PID = 7


def proc_with(folder: Path, syscall: str, *, memory: bytes = b"", wchan: str = "", fdinfo: str = "") -> Path:
    task = folder / str(PID) / "task" / str(PID)
    task.mkdir(parents=True)
    (task / "syscall").write_text(syscall)
    (task / "wchan").write_text(wchan)
    (folder / str(PID) / "mem").write_bytes(memory)
    (folder / str(PID) / "fdinfo").mkdir()
    (folder / str(PID) / "fdinfo" / "4").write_text(fdinfo)
    return folder


def read(proc: Path) -> dict[int, tuple[int, ...]]:
    return read_waited_fds(PID, [PID], proc, machine="x86_64")


@pytest.mark.parametrize(
    "syscall",
    [
        "7 0xffffffffffffffff 0x2 0x0 0x0 0x0 0x0 0x0 0x0",
        "7 0x1000 0xffffffffffffffff 0x0 0x0 0x0 0x0 0x0 0x0",
        "7 0x1000 0x2 0x0 0x0 0x0 0x0 0x0 0x0",
        "23 0xffffffffffffffff 0x8 0x0 0x0 0x0 0x0 0x0 0x0",
        "23 0x40 0xffffffffffffffff 0x0 0x0 0x0 0x0 0x0 0x0",
        "232 0xffffffffffffffff 0x0 0x0 0x0 0x0 0x0 0x0 0x0",
        "0 0xffffffffffffffff 0x0 0x0 0x0 0x0 0x0 0x0 0x0",
        "219 0x0 0x1 0x0 0x0 0x0 0x0 0x0 0x0",
        "202 0x0 0x80 0x0 0x0 0x0 0x0 0x0 0x0",
        "7 zebra 0x1 0x0 0x0 0x0 0x0 0x0 0x0",
        "-1 0x0 0x0",
        "running",
        "",
    ],
)
def test_what_cannot_be_read_is_left_out(tmp_path: Path, syscall: str) -> None:
    assert read(proc_with(tmp_path, syscall, wchan="hrtimer_nanosleep")) == {}


def test_descriptors_that_poll_leaves_out_are_no_wait(tmp_path: Path) -> None:
    entries = b"".join(fd.to_bytes(4, "little", signed=True) + b"\x01\0\0\0" for fd in (9, -1, 3))
    assert read(proc_with(tmp_path, "7 0x0 0x3 0x0 0x0 0x0 0x0 0x0 0x0", memory=entries)) == {PID: (3, 9)}


def test_another_machine_has_other_numbers(tmp_path: Path) -> None:
    proc = proc_with(tmp_path, "73 0x0 0x1 0x0 0x0 0x0 0x0 0x0 0x0", memory=b"\x05\0\0\0\x01\0\0\0")
    assert read(proc) == {}
    assert read_waited_fds(PID, [PID], proc, machine="aarch64") == {PID: (5,)}
    assert read_waited_fds(PID, [PID], proc, machine="riscv64") == {}


def test_a_server_with_very_many_connections_has_no_answer(tmp_path: Path) -> None:
    rows = "".join(f"tfd: {fd:8d} events:       19 data: {fd:16x}\n" for fd in range(300))
    assert read(proc_with(tmp_path, "232 0x4 0x0 0x0 0x0 0x0 0x0 0x0 0x0", fdinfo=rows)) == {}
