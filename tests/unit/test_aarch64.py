"""What differs on aarch64: numbers of system calls, the ELF header, and where glibc keeps a thread's id."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from ray_rl_debug.collect.async_tasks.elf import EM_AARCH64, EM_X86_64, Image, find_python
from ray_rl_debug.collect.async_tasks.memory import Mapping, Memory
from ray_rl_debug.collect.async_tasks.runtime import GLIBC_TID
from ray_rl_debug.collect.cut_short import is_cut_short
from ray_rl_debug.collect.waited_fds import read_waited_fds
from ray_rl_debug.model.system_calls import call_name

GENERIC = """
    22 epoll_pwait 25 fcntl 32 flock 56 openat 63 read 64 write 65 readv 66 writev 67 pread64 68 pwrite64 69 preadv 70 pwritev 72 pselect6 73 ppoll
    82 fsync 83 fdatasync 95 waitid 98 futex 101 nanosleep 115 clock_nanosleep 124 sched_yield 128 restart_syscall
    133 rt_sigsuspend 137 rt_sigtimedwait
    182 mq_timedsend 183 mq_timedreceive 188 msgrcv 189 msgsnd 192 semtimedop 193 semop
    202 accept 203 connect 206 sendto 207 recvfrom 211 sendmsg 212 recvmsg 242 accept4 243 recvmmsg 260 wait4 269 sendmmsg 437 openat2
    441 epoll_pwait2 449 futex_waitv
"""
"""Of the kernel's include/uapi/asm-generic/unistd.h, which aarch64 uses."""
HEADERS = {"aarch64": Path("/usr/include/asm-generic/unistd.h"), "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")}
_DEFINED = re.compile(r"^#define __NR(?:3264)?_(\w+) (\d+)$", re.MULTILINE)


def test_numbers_are_those_of_the_generic_table() -> None:
    words = GENERIC.split()
    recorded = {int(number): name for number, name in zip(words[::2], words[1::2], strict=True)}
    assert {number: name for number in range(500) if (name := call_name(number, "aarch64"))} == recorded


@pytest.mark.parametrize("machine", HEADERS)
def test_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    header = HEADERS[machine]
    if not header.exists():
        pytest.skip("the kernel's headers are not installed: apt-get install linux-libc-dev")
    defined = {int(number): name for name, number in _DEFINED.findall(header.read_text())}
    ours = {number: name for number in range(500) if (name := call_name(number, machine))}
    assert {number: defined.get(number) for number in ours} == ours


@pytest.mark.parametrize("call", ["read", "write", "futex", "ppoll", "pselect6", "epoll_pwait", "accept4", "recvfrom", "wait4", "flock"])
def test_what_is_known_on_x86_64_is_known_on_aarch64(call: str) -> None:
    """The older calls (poll, select, epoll_wait, pause, open) are not there on aarch64; glibc uses those of this list."""
    assert {call_name(number, "aarch64") for number in range(500)} >= {call}
    assert {call_name(number, "x86_64") for number in range(500)} >= {call}


def proc_with(folder: Path, line: str, memory: bytes = b"") -> Path:
    task = folder / "7" / "task" / "7"
    task.mkdir(parents=True)
    (task / "syscall").write_text(line + "\n")
    (task / "wchan").write_text("")
    (folder / "7" / "mem").write_bytes(memory)
    return folder


def test_descriptors_of_ppoll(tmp_path: Path) -> None:
    """Recorded form of ``/proc/PID/task/TID/syscall``: the number, six arguments, stack and program pointer."""
    memory = bytes(4096) + struct.pack("<ihhihh", 5, 1, 0, 9, 1, 0)
    proc = proc_with(tmp_path, "73 0x1000 0x2 0x0 0x0 0x8 0x0 0xffffc7d0a5e0 0xffff9f2c4e34", memory)
    assert read_waited_fds(7, [7], proc, machine="aarch64") == {7: (5, 9)}
    assert read_waited_fds(7, [7], proc, machine="x86_64") == {}  # 73 is flock there


@pytest.mark.parametrize(("line", "cut"), [("64 0x1 0xffff 0x10", True), ("63 0x1 0xffff 0x10", False), ("207 0x4 0xffff 0x10 0x100", True)])
def test_waits_that_a_stop_would_end(line: str, cut: bool, tmp_path: Path) -> None:
    words = line.split()
    proc = proc_with(tmp_path, " ".join([*words, *["0x0"] * (7 - len(words)), "0xffffc7d0a5e0", "0xffff9f2c4e34"]))
    assert is_cut_short(7, proc, machine="aarch64") is cut


BASE, PAGE_64K = 0xAAAA00000000, 65536


class Loaded:
    """One loaded position-independent program for a machine; as kernels with pages of 64 KiB lay it out."""

    def __init__(self, machine: int) -> None:
        self.data = bytearray(2 * PAGE_64K)
        self.data[:64] = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, machine, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
        self.data[64:176] = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, PAGE_64K, PAGE_64K, PAGE_64K) + struct.pack(
            "<IIQQQQQQ", 2, 6, 0, 4096, 0, 0, 0, 8
        )
        tags = [(4, 8192), (5, 12288), (6, 16384), (0, 0)]  # DT_HASH, DT_STRTAB, DT_SYMTAB
        self.data[4096 : 4096 + 64] = b"".join(struct.pack("<QQ", *t) for t in tags)
        self.data[8192:8200] = struct.pack("<II", 1, 2)
        self.data[12288:12300] = b"\0_PyRuntime\0"
        self.data[16384 + 24 : 16384 + 48] = struct.pack("<IBBHQQ", 1, 17, 0, 5, PAGE_64K + 640, 8)

    def mappings(self) -> Sequence[Mapping]:
        return [Mapping(BASE, BASE + len(self.data), 0, 11, "/opt/python3.10")]

    def pread(self, size: int, address: int) -> bytes:
        return bytes(self.data[address - BASE : address - BASE + size])


@pytest.mark.parametrize("machine", [EM_AARCH64, EM_X86_64])
def test_a_program_of_either_machine_is_found(machine: int) -> None:
    image = find_python(Memory(Loaded(machine), float("inf")))
    assert image is not None
    assert (image.machine, image.find("_PyRuntime")) == (machine, BASE + PAGE_64K + 640)


def test_where_glibc_keeps_the_id_of_a_thread() -> None:
    """Measured: ``gettid()`` stood there behind ``pthread_self()`` in glibc 2.36 of both machines. Of others nothing is known."""
    assert GLIBC_TID == {EM_X86_64: 720, EM_AARCH64: 208}
    assert GLIBC_TID.get(Image(Memory(Loaded(243), float("inf")), BASE, "/opt/python3.10").machine) is None  # RISC-V
