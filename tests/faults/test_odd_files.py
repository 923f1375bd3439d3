"""Files of the job that are no files, files that are made to hurt, and descriptors that run out."""

from __future__ import annotations

import os
import resource
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from processes import wait_for

from ray_rl_debug.collect.async_tasks.elf import find_python
from ray_rl_debug.collect.async_tasks.memory import Mapping, Memory, Spent
from ray_rl_debug.collect.environ import find_symbol, read_environment_now
from ray_rl_debug.collect.logs import collect_log_lines
from ray_rl_debug.collect.printed import Printed
from ray_rl_debug.collect.procfs import read_stat
from ray_rl_debug.collect.source_lines import read_calls
from ray_rl_debug.watch.signals import Known, SignReader

pytestmark = pytest.mark.integration

PRINTS = "import sys, time\nprint('ready', flush=True)\nfor line in sys.stdin:\n    print(line, end='', flush=True)\n"


def known(pid: int) -> Known:
    stat = read_stat(Path(f"/proc/{pid}"))
    assert stat is not None
    return Known(pid=pid, born=stat.start_ticks, kind="child", ppid=1, title="")


def readers_of(path: Path) -> set[int]:
    """Processes that hold a FIFO open for reading."""
    found = set()
    for folder in Path("/proc").iterdir():
        for link in folder.glob("fd/*") if folder.name.isdigit() else ():
            try:
                flags = (folder / "fdinfo" / link.name).read_text().split("flags:")[1].split()[0]
                if os.readlink(link) == str(path) and int(flags, 8) & 3 == os.O_RDONLY and not int(flags, 8) & os.O_PATH:
                    found.add(int(folder.name))
            except (OSError, IndexError):
                continue
    return found


def test_output_into_a_fifo(tmp_path: Path) -> None:
    """The standard output of a watched process is a FIFO that another program reads.

    We never become its reader: each line reaches that program, and when it ends the process learns of it.
    """
    fifo = tmp_path / "out"
    os.mkfifo(fifo)
    held = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    out = os.open(fifo, os.O_WRONLY)
    child = subprocess.Popen([sys.executable, "-c", PRINTS], stdin=subprocess.PIPE, stdout=out)
    os.close(out)
    try:
        assert wait_for(lambda: _read(held), "no line") == b"ready\n"
        reader = SignReader()
        reader.watch([known(child.pid)])
        reader.read()
        Printed([child.pid]).read()
        assert readers_of(fifo) == {os.getpid()}, "somebody else reads it"
        assert len([fd for fd in os.listdir("/proc/self/fd") if _leads_to(fd, fifo)]) == 1
        assert child.stdin is not None
        child.stdin.write(b"a line\n")
        child.stdin.flush()
        assert wait_for(lambda: _read(held), "no line") == b"a line\n"
        os.close(held)
        child.stdin.write(b"nobody reads this\n")
        child.stdin.flush()
        assert child.wait(10) != 0, "it was not told that its reader is gone"
        reader.close()
    finally:
        child.kill()
        child.wait()


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 1000)
    except BlockingIOError:
        return b""


def _leads_to(fd: str, path: Path) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{fd}") == str(path)
    except OSError:
        return False


def test_logs_and_sources_that_are_no_files(tmp_path: Path) -> None:
    """Where Ray's logs and the job's sources should lie there are FIFOs, devices, folders and links to them.

    None of them is opened; each log is told as a gap, and the look takes no time.
    """
    logs = tmp_path / "logs"
    logs.mkdir()
    os.mkfifo(logs / "raylet.err")
    (logs / "raylet.out").symlink_to("/dev/zero")
    (logs / "gcs_server.err").mkdir()
    os.mkfifo(tmp_path / "source.py")
    began = time.monotonic()
    lines, (gap,) = collect_log_lines([], tmp_path)
    assert (lines, gap.what) == ({}, "some of 3 log files")
    assert read_calls({1: (os.getpid(), str(tmp_path / "source.py"), 1)}, total_s=0.5) == {}
    assert time.monotonic() - began < 5


@pytest.fixture
def few_descriptors() -> Iterator[int]:
    """The soft and the hard limit are low: nobody can raise it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield 120
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_processes_than_descriptors(few_descriptors: int) -> None:
    """Two hundred processes are watched with 120 descriptors, and the limit cannot be raised.

    Each of them is read all the same, each time, and descriptors are left for others.
    """
    children = [subprocess.Popen(["sleep", "600"]) for _ in range(200)]
    program = (
        "import os, resource, sys\n"
        "from pathlib import Path\n"
        "from ray_rl_debug.watch.signals import Known, SignReader\n"
        "from ray_rl_debug.collect.procfs import read_stat\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({few_descriptors}, {few_descriptors}))\n"
        "pids = [int(a) for a in sys.argv[1:]]\n"
        "reader = SignReader()\n"
        "born = {pid: read_stat(Path(f'/proc/{pid}')).start_ticks for pid in pids}\n"
        "reader.watch(Known(pid=pid, born=born[pid], kind='child', ppid=1, title='') for pid in pids)\n"
        "for _ in range(3):\n"
        "    assert {s.pid for s in reader.read().signs} == set(pids)\n"
        "assert len(os.listdir('/proc/self/fd')) < 90, len(os.listdir('/proc/self/fd'))\n"
        "print('all')\n"
    )
    try:
        done = subprocess.run([sys.executable, "-c", program, *(str(c.pid) for c in children)], capture_output=True, timeout=60)
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.wait()
    assert done.stdout == b"all\n", done.stderr.decode()


def elf(*, sections: int = 2, count: int | None = None, size: int = 64, table: tuple[int, ...] = (), strings: tuple[int, ...] = ()) -> bytes:
    """The head of an ELF64 file with a table of dynamic symbols and their names."""
    head = bytearray(64)
    head[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<H", head, 0x10, 3)
    struct.pack_into("<Q", head, 0x28, 64)
    struct.pack_into("<HH", head, 0x3A, size, sections if count is None else count)
    rows = [
        struct.pack("<IIQQQQIIQQ", 0, 11, 0, 0, *(table or (192, 24)), 1, 0, 0, 24),
        struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, *(strings or (216, 9)), 0, 0, 0, 0),
    ]
    symbol = struct.pack("<IBBHQQ", 1, 0, 0, 1, 0x1234, 8)
    return bytes(head) + b"".join(rows) + symbol + b"\0environ\0"


def test_a_program_file_that_is_sparse(tmp_path: Path) -> None:
    """The program of a process says that it has a table of symbols of a terabyte, and the file is that large, and empty.

    A few megabytes are read; there is no symbol, in well under a second.
    """
    path = tmp_path / "hostile"
    with path.open("wb") as file:
        file.write(elf(table=(1 << 20, 1 << 40)))
        try:
            file.truncate(1 << 41)
        except OSError:
            file.truncate(1 << 38)
    with path.open("rb") as file:
        began = time.monotonic()
        assert find_symbol(lambda at, size: os.pread(file.fileno(), size, at)) is None
    assert time.monotonic() - began < 3
    assert find_symbol(lambda at, size: elf()[at : at + size]) == (0x1234, False)
    now = read_environment_now(os.getpid())
    assert now is not None
    assert "PATH" in dict(now)


@settings(max_examples=200, deadline=2000, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=600), st.integers(0, 600), st.integers(0, 255))
@example(b"", 0, 0)
@example(b"\x7fELF\x02", 5, 0xFF)
@example(elf(count=65535), 0x3C, 0xFF)
@example(elf(size=0), 0x3A, 0)
@example(elf(table=(1 << 63, 1 << 63)), 0xD8, 0xFF)
@example(elf(strings=(0, 1 << 62)), 0xF0, 0xFF)
def test_any_bytes_as_a_program_file(data: bytes, at: int, value: int) -> None:
    """The program file of a process holds any bytes, or a good one with some of them changed.

    There is a symbol or none; no other error, and no time is lost.
    """
    good = bytearray(elf())
    if at < len(good):
        good[at] = value
    for whole in (data, bytes(good), elf() + data):
        read = memory_of(whole)
        try:
            find_symbol(read)
        except (struct.error, OverflowError):
            continue  # what its caller takes for a file that tells nothing


def memory_of(whole: bytes):  # type: ignore[no-untyped-def]
    def read(at: int, size: int) -> bytes:
        if at >= 1 << 63:
            raise OverflowError
        return whole[at : at + size]

    return read


class _Picture:
    """A process whose memory is a picture of ours."""

    def __init__(self, whole: bytes, copies: int) -> None:
        self._whole, self._copies = whole, copies

    def mappings(self) -> list[Mapping]:
        return [Mapping(0x1000 * (i + 1) * 16, 0x1000 * (i + 1) * 16 + 0x8000, 0, 1, f"/lib/libpython3.{i}.so") for i in range(self._copies)]

    def pread(self, size: int, address: int) -> bytes:
        start = address % 0x10000
        return (self._whole[start : start + size]).ljust(size, b"\0")


def test_a_loaded_image_with_endless_symbols() -> None:
    """A thousand loaded images say that each has four thousand million symbols, in pages that we have read already.

    The deadline of the read holds.
    """
    image = bytearray(0x8000)
    image[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", image, 32, 64)
    struct.pack_into("<HH", image, 54, 56, 2)
    struct.pack_into("<IIQQ", image, 64, 1, 0, 0, 0)
    struct.pack_into("<IIQQ", image, 120, 2, 0, 0, 0x200)
    for i, (tag, value) in enumerate(((4, 0x300), (5, 0x400), (6, 0x500), (0, 0))):
        struct.pack_into("<QQ", image, 0x200 + 16 * i, tag, value)
    struct.pack_into("<II", image, 0x300, 1, 0xFFFFFFFF)
    began = time.monotonic()
    memory = Memory(_Picture(bytes(image), 1000), began + 0.3)
    with pytest.raises(Spent):
        find_python(memory)
    assert time.monotonic() - began < 3
