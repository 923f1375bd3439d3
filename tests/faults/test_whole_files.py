"""Files of ours that are being written when the process is killed, when the place is taken, when the disk is full."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ray_rl_debug.model import whole_files
from ray_rl_debug.model.errors import OutputError
from ray_rl_debug.model.whole_files import whole_file, write_whole

WRITES = """
import sys
from pathlib import Path
from ray_rl_debug.model.whole_files import whole_file
with whole_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print(flush=True)
    sys.stdin.read()
"""


def test_a_kill_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    """SIGKILL comes between the first and the last byte of a file.
    There is no file with the name, and none beside it."""
    child = subprocess.Popen([sys.executable, "-c", WRITES, str(tmp_path / "report.json")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdin is not None
    child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.wait(10)
    child.stdin.close()
    child.stdout.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("has_nameless", [True, False], ids=["files without a name", "a file system without them"])
def test_the_last_one_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_nameless: bool) -> None:
    """A second file comes, the disk is full, a link lies in the place.
    A file is replaced at once or not at all, and what a link leads to stays."""
    if not has_nameless:
        monkeypatch.setattr(whole_files, "_nameless", lambda folder: None)
    place, other = tmp_path / "report.json", tmp_path / "other"
    write_whole(place, b"first")
    write_whole(place, b"second")
    assert place.read_bytes() == b"second"
    assert place.stat().st_mode & 0o077 == 0
    with pytest.raises(OutputError, match="No space left"):
        _fill_the_disk(place)
    assert place.read_bytes() == b"second"
    other.write_bytes(b"theirs")
    place.unlink()
    place.symlink_to(other)
    write_whole(place, b"ours")
    assert (place.read_bytes(), other.read_bytes(), place.is_symlink()) == (b"ours", b"theirs", False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other", "report.json"]


def _fill_the_disk(place: Path) -> None:
    with whole_file(place) as file:
        file.write(b"third")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_system_that_links_no_nameless_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file system refuses to link a file that has no name.
    The file gets its name all the same."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", refuse)
    write_whole(tmp_path / "report.json", b"all of it")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("report.json", b"all of it")]
