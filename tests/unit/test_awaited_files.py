"""Lock files that processes wait to go away: which file it is, who holds it open, and what is never touched."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from ray_rl_debug.collect.awaited_files import read_awaited_files
from ray_rl_debug.model.snapshot import AwaitedFile, Frame, Local, Process, Sample, ThreadSample
from ray_rl_debug.privacy.kept_locals import keep_value

FRAMES = (
    Frame(function="FileBaton.wait", file="torch/utils/file_baton.py", line=50),
    Frame(function="_jit_compile", file="torch/utils/cpp_extension.py", line=2400),
    Frame(function="FileBaton.wait", file="aiter/jit/utils/file_baton.py", line=40),
    Frame(function="mp_lock", file="aiter/jit/core.py", line=60),
    Frame(function="_run_ninja_build", file="torch/utils/cpp_extension.py", line=2500),
)
STACKS = ((0, 1), (2, 3), (4, 1))
TORCH, AITER, BUILDS = range(3)


def waiter(path: Path | str, *, stack: int = TORCH, name: str = "build_directory", pid: int | None = None) -> Process:
    thread = ThreadSample(stack=stack, tid=1, locals=(Local(frame=1, name=name, value=f'"{path}"'),))
    return Process(pid=pid or os.getpid(), title="python train.py", samples=(Sample(at_s=0.0, threads=(thread,)),))


def read(*processes: Process, proc: Path = Path("/proc")) -> tuple[AwaitedFile, ...]:
    return read_awaited_files(processes, FRAMES, STACKS, total_s=30.0, proc=proc)


@pytest.fixture
def builder(tmp_path: Path) -> Iterator[int]:
    """Pid of a process that has made the lock file of `tmp_path` and is not done."""
    made = "import os, sys; os.open(sys.argv[1], os.O_CREAT | os.O_EXCL); print(flush=True); sys.stdin.read()"
    with Popen([sys.executable, "-c", made, str(tmp_path / "lock")], stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate()


def test_whoever_holds_the_file_open_has_the_lock(tmp_path: Path, builder: int) -> None:
    (found,) = read(waiter(tmp_path))
    assert (found.path, found.waiters, found.holders) == (f"{tmp_path}/lock", (os.getpid(),), (builder,))
    assert found.made_time_s == pytest.approx((tmp_path / "lock").stat().st_mtime, abs=0.01)


def test_a_file_that_its_maker_left_has_no_holder(tmp_path: Path) -> None:
    (tmp_path / "lock_module_norm").touch()
    (found,) = read(waiter(tmp_path / "lock_module_norm", stack=AITER, name="lockPath"))
    assert (found.path, found.holders) == (f"{tmp_path}/lock_module_norm", ())


def test_two_who_wait_for_one_file_share_it(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (found,) = read(waiter(tmp_path), waiter(tmp_path, pid=os.getppid()))
    assert found.waiters == (os.getpid(), os.getppid())


@pytest.mark.parametrize("stack", [TORCH, BUILDS], ids=["gone by now", "builds itself"])
def test_no_file_is_told_where_nobody_waits_for_one(tmp_path: Path, stack: int) -> None:
    if stack == BUILDS:
        (tmp_path / "lock").touch()
    assert read(waiter(tmp_path, stack=stack)) == ()


@pytest.mark.parametrize("special", [os.mkfifo, os.mkdir], ids=["FIFO", "folder"])
def test_what_is_no_plain_file_is_no_lock_file(tmp_path: Path, special: object) -> None:
    special(tmp_path / "lock")  # type: ignore[operator]
    assert read(waiter(tmp_path)) == ()


def machine(folder: Path, mounts: str, status: str = "") -> Path:
    """A /proc in which our own process sees these mounts, and process 1 hides its files."""
    mine = folder / "proc" / str(os.getpid())
    mine.mkdir(parents=True)
    (mine / "fd").mkdir()
    (mine / "mounts").write_text(mounts)
    (mine / "root").symlink_to("/")
    if status:
        (folder / "proc" / "1").mkdir()
        (folder / "proc" / "1" / "status").write_text(status)
    return folder / "proc"


def test_a_file_on_a_network_mount_is_named_and_never_touched(tmp_path: Path) -> None:
    proc = machine(tmp_path, "home:/x /nowhere/home nfs4 rw 0 0\n")
    assert read(waiter("/nowhere/home/cache"), proc=proc) == (
        AwaitedFile(path="/nowhere/home/cache/lock", waiters=(os.getpid(),), mount="nfs4 home:/x"),
    )


@pytest.mark.parametrize(
    ("status", "unread"),
    [
        ("Uid:\t{0}\t{0}\t{0}\t{0}\nVmHWM:\t900000 kB\n", 1),
        ("Uid:\t{0}\t{0}\t{0}\t{0}\nVmHWM:\t9000 kB\n", 0),
        ("Uid:\t{0}\t{0}\t{0}\t{0}\n", 0),
        ("Uid:\t77\t77\t77\t77\nVmHWM:\t900000 kB\n", 0),
    ],
    ids=["a large one of the same user", "an agent of the session", "one that has ended", "another user's"],
)
def test_only_those_count_as_unread_that_may_have_made_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, unread: int) -> None:
    (tmp_path / "lock").touch()
    proc = machine(tmp_path, "/dev/sda / ext4 rw 0 0\n", status.format((tmp_path / "lock").stat().st_uid))
    walk = Path.iterdir

    def hidden(folder: Path) -> Iterator[Path]:
        if folder == proc / "1" / "fd":
            raise PermissionError
        return walk(folder)

    monkeypatch.setattr(Path, "iterdir", hidden)  # the tests may run as root, from whom no mode hides a folder
    (found,) = read(waiter(tmp_path), proc=proc)
    assert (found.holders, found.unread) == ((), unread)


@pytest.mark.parametrize(
    ("file", "name", "value", "kept"),
    [
        ("torch/utils/cpp_extension.py", "build_directory", '"/root/.cache/torch_extensions/py311/flash"', True),
        ("aiter/jit/core.py", "lockPath", '"/opt/aiter/build/lock_norm"', True),
        ("torch/utils/cpp_extension.py", "build_directory", '"relative"', False),
        ("torch/utils/cpp_extension.py", "build_directory", '"/a", "/b"', False),
        ("torch/utils/cpp_extension.py", "sources", '"/home/u/secret.cpp"', False),
        ("app/cpp_extension.py", "build_directory", '"/home/u"', False),
    ],
)
def test_only_the_path_of_the_lock_file_is_kept_of_the_locals(file: str, name: str, value: str, kept: bool) -> None:
    assert keep_value(file, False, "_jit_compile", name, value) == (value if kept else None)
