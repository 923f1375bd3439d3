"""Root looks at files of another user, who gives their names to other files at the same time."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import wait_for

from ray_rl_debug.bounded.opening import open_own, open_regular
from ray_rl_debug.collect.prepared import read_stacks
from ray_rl_debug.in_job.prepare import stack_file

pytestmark = [pytest.mark.integration, pytest.mark.skipif(os.getuid() != 0, reason="needs root to have two users")]

NOBODY = 65534
LOOKS_S = 3.0

SWAPPER = """
import os, signal, sys
from pathlib import Path
from ray_rl_debug.in_job.prepare import SIGNAL, _start_ticks, stack_file
folder, victim, how = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
signal.signal(SIGNAL, lambda *_: None)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
path = stack_file(os.getpid(), _start_ticks(), 65534, folder)
path.parent.mkdir(mode=0o700)
good, bad = path.parent / "good", path.parent / "bad"
print("ready", flush=True)
real = path.parent
while True:
    if how == "folder":
        # the whole folder turns into a link to one of root's, where a file of that name lies
        try:
            os.rename(real, folder / "aside")
            os.symlink(Path(victim).parent, real)
            os.unlink(real)
            os.rename(folder / "aside", real)
            path.touch()
        except OSError:
            pass
        continue
    good.touch()
    os.rename(good, path)
    if how == "symlink":
        os.symlink(victim, bad)
    elif how == "fifo":
        os.mkfifo(bad)
    else:
        os.link(victim, bad)
    os.rename(bad, path)
"""


@pytest.fixture
def folders() -> Iterator[tuple[Path, Path]]:
    """One of nobody's, one of root's."""
    with tempfile.TemporaryDirectory(dir="/tmp") as theirs, tempfile.TemporaryDirectory(dir="/tmp") as ours:
        os.chown(theirs, NOBODY, NOBODY)
        os.chmod(ours, 0o755)
        yield Path(theirs), Path(ours)


@contextlib.contextmanager
def swapper(folder: Path, victim: Path, how: str) -> Iterator[int]:
    child = subprocess.Popen([sys.executable, "-c", SWAPPER, str(folder), str(victim), how], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        yield child.pid
    finally:
        child.kill()
        child.wait()
        child.stdout.close()  # type: ignore[union-attr]


@pytest.mark.parametrize("how", ["symlink", "hard link", "fifo", "folder"])
def test_stack_file_of_a_prepared_process(how: str, folders: tuple[Path, Path]) -> None:
    """The owner of a prepared process swaps its stack file (or its folder) for a link to a file of root, in a loop, while root looks.

    The file of root keeps every byte; root is never held up.
    """
    theirs, ours = folders
    victim = ours / "precious"
    with contextlib.ExitStack() as stack:
        if how == "hard link":
            # the kernel may allow it, or not (protected_hardlinks): a file that nobody may write to is linked only where it may
            victim.write_text("precious")
            os.chmod(victim, 0o666)
        pid = stack.enter_context(swapper(theirs, victim, how))
        if how == "folder":
            from ray_rl_debug.collect.procfs import read_stat

            facts = read_stat(Path(f"/proc/{pid}"))
            assert facts is not None
            victim = ours / stack_file(pid, facts.start_ticks, NOBODY, theirs).name
        victim.write_text("precious")
        looks, end = 0, time.monotonic() + LOOKS_S
        while time.monotonic() < end:
            began = time.monotonic()
            read_stacks(pid, timeout_s=0.002, folder=theirs)
            assert time.monotonic() - began < 2
            looks += 1
            assert victim.read_text() == "precious", f"truncated at look {looks}"
    assert looks > 50


def test_a_prepared_process_of_another_user_is_read(tmp_path: Path) -> None:
    """Nobody swaps anything: a prepared process of another user writes its stacks.

    Root reads them.
    """
    program = (
        "import os, time\n"
        "import ray_rl_debug.in_job.prepare as p\n"
        "from pathlib import Path\n"
        "import sys, ray_rl_debug.formats.faulthandler\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "p.stack_file.__defaults__ = (Path(sys.argv[1]),)\n"
        "p.open_doors()\n"
        "print('ready', flush=True)\n"
        "def nap(): time.sleep(600)\n"
        "nap()\n"
    )
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chown(folder, NOBODY, NOBODY)
        child = subprocess.Popen([sys.executable, "-c", program, folder], stdout=subprocess.PIPE)
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            # it says that it is ready before it naps
            wait_for(
                lambda: [f[0] for f in (read_stacks(child.pid, folder=Path(folder)) or ((0, 0, ()),))[0][2]] == ["nap", "<module>"], "no nap", 10
            )
        finally:
            child.kill()
            child.wait()
            child.stdout.close()  # type: ignore[union-attr]


def test_what_is_no_file_of_theirs(tmp_path: Path) -> None:
    """A name leads to a FIFO, a socket, a device, a folder, or a file of another user.

    Each is refused at once, and nothing is taken from a FIFO.
    """
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(fifo, os.O_WRONLY)
    os.write(writer, b"a line of the job")
    foreign = tmp_path / "foreign"
    foreign.write_text("x")
    os.chown(foreign, NOBODY, NOBODY)
    for path in (fifo, Path("/dev/zero"), tmp_path):
        with pytest.raises(OSError, match="not a regular file"):
            open_regular(path)
    with pytest.raises(PermissionError):
        open_regular(foreign, owners=(0,))
    with open_regular(foreign, owners=(NOBODY,)) as file:
        assert file.read() == b"x"
    with pytest.raises(PermissionError):
        open_own(tmp_path, "foreign", 0)
    assert os.read(reader, 100) == b"a line of the job"
    assert stat.S_ISFIFO(os.fstat(reader).st_mode)
    os.close(reader)
    os.close(writer)
