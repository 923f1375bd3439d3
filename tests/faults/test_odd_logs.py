"""Folders of logs that hold anything: what is no file, what is no plain text, what never ends, and more than anybody reads."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ray_rl_debug.commands.cli import main
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports import files
from ray_rl_debug.imports.folder import load
from ray_rl_debug.imports.unpacking import blocks
from ray_rl_debug.model import gaps
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.log_story import LogStory
from ray_rl_debug.model.snapshot import Snapshot

RAISED = "Traceback (most recent call last):\n  File \"/job/reward.py\", line 41, in score\n    return table[key]\nKeyError: 'é'\n"


def steps(count: int) -> str:
    return "".join(f"2026-11-21 10:00:{i:02},000 INFO step {i} loss 0.5\n" for i in range(count))


def loaded(path: Path) -> Snapshot:
    found = load([path]).snapshot
    assert found is not None
    return found


def story(path: Path) -> LogStory:
    told = diagnose(loaded(path)).story
    assert told is not None
    return told


def unread(found: Snapshot) -> dict[str, str]:
    return {g.where: g.reason for g in found.gaps if g.id == gaps.FILE_UNREAD}


def test_what_is_no_file_in_a_folder_of_logs(tmp_path: Path) -> None:
    """A folder of logs holds a FIFO, a socket, a link to nothing, links in a ring and a link to another folder.

    Each is told with the reason, none is waited for, and the logs beside them are read. A link to a folder that is read anyway is left alone.
    """
    logs = tmp_path / "logs"
    logs.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (logs / "inside").mkdir()
    (logs / "rank0.log").write_text(steps(3) + RAISED)
    os.mkfifo(logs / "pipe.log")
    listening = socket.socket(socket.AF_UNIX)
    here = os.open(".", os.O_RDONLY)
    os.chdir(logs)  # the name of a socket is at most 107 bytes long
    try:
        listening.bind("sock.log")
    finally:
        os.fchdir(here)
        os.close(here)
        listening.close()
    (logs / "gone.log").symlink_to("nowhere")
    (logs / "ring1").symlink_to("ring2")
    (logs / "ring2").symlink_to("ring1")
    (logs / "away").symlink_to(tmp_path / "elsewhere")
    (logs / "latest").symlink_to("inside")
    began = time.monotonic()
    found = loaded(logs)
    assert time.monotonic() - began < 5
    assert unread(found) == {
        "pipe.log": "a pipe, no file",
        "sock.log": "a socket, no file",
        "gone.log": "a link that leads nowhere",
        "ring1": "a link that leads nowhere",
        "ring2": "a link that leads nowhere",
        "away": "a link to another folder; give that folder itself",
    }
    assert [book.file.rsplit("/", 1)[1] for book in found.logs] == ["rank0.log"]


def test_one_file_under_several_names(tmp_path: Path) -> None:
    """A log has a second name, a link points at it, and it is named on the command line beside its folder.

    It is one process that failed, not four.
    """
    (tmp_path / "rank0.log").write_text(steps(3) + RAISED)
    (tmp_path / "rank1.log").symlink_to("rank0.log")
    os.link(tmp_path / "rank0.log", tmp_path / "rank2.log")
    found = load([tmp_path, tmp_path / "rank0.log"]).snapshot
    assert found is not None and len(found.logs) == 1


@pytest.mark.parametrize("made", ["in front", "between", "utf-16-le", "utf-16-be", "utf-16 without a mark"])
def test_zeros_in_a_log(tmp_path: Path, made: str) -> None:
    """A log that was cut while its program wrote on begins with zeros, a machine that went down left some in the middle, or it is UTF-16.

    The lines are read as they were written, with their numbers.
    """
    text = steps(30) + RAISED
    data = {
        "in front": bytes(100_000) + text.encode(),
        "between": steps(30).encode() + bytes(5_000) + RAISED.encode(),
        "utf-16-le": b"\xff\xfe" + text.encode("utf-16-le"),
        "utf-16-be": b"\xfe\xff" + text.encode("utf-16-be"),
        "utf-16 without a mark": text.replace("é", "e").encode("utf-16-le"),
    }[made]
    (tmp_path / "rank0.log").write_bytes(data)
    first = story(tmp_path / "rank0.log").first
    assert first is not None
    assert (first.text, first.line, first.text_line) == ("KeyError: 'e'" if "without" in made else "KeyError: 'é'", 31, 34)


def test_a_log_of_which_most_is_a_hole(tmp_path: Path) -> None:
    """A log of 40 GB is a hole and a kilobyte: it was cut while its program wrote on.

    Its lines are told within seconds.
    """
    with (tmp_path / "rank0.log").open("wb") as f:
        f.truncate(40 << 30)
        f.seek(40 << 30)
        f.write((steps(30) + RAISED).encode())
    began = time.monotonic()
    first = story(tmp_path).first
    assert first is not None and first.text == "KeyError: 'é'"
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("data", [b"\x7fELF\x02\x01\x01\0" + bytes(range(256)) * 40, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 40])
def test_a_program_or_a_picture_among_logs(tmp_path: Path, data: bytes) -> None:
    """A file is no text at all.

    It is told so, and not read as one.
    """
    (tmp_path / "core").write_bytes(data)
    with pytest.raises(UnreadableFileError, match="binary data"):
        load([tmp_path])


def test_a_log_that_grows_faster_than_it_is_read(tmp_path: Path) -> None:
    """A program writes on while its log is read, a block for each block.

    What was there at the beginning is read, and the reading ends.
    """
    path = tmp_path / "rank0.log"
    path.write_bytes(b"a line\n" * 10_000)
    size = path.stat().st_size
    taken = 0
    with path.open("ab") as f:
        for block in blocks(path, 4096):
            taken += len(block)
            f.write(b"more\n" * 1000)
            f.flush()
            assert taken <= size
    assert taken == size


def test_more_files_than_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder holds more files than we read.

    How many were left out is told; the first ones are read.
    """
    monkeypatch.setattr(files, "MAX_FILES", 3)
    for i in range(5):
        (tmp_path / f"rank{i}.log").write_text(steps(2) + RAISED)
    found = loaded(tmp_path)
    assert len(found.logs) == 3
    assert [(g.where, g.what, g.reason) for g in found.gaps if g.id == gaps.TRUNCATED] == [(tmp_path.name, "2 more files", "at most 3 are read")]


def test_a_line_that_is_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    """A log is one line of many megabytes.

    One sentence says why it is of no use.
    """
    (tmp_path / "one.log").write_bytes(b"x1 error 2 " * 400_000)
    with pytest.raises(UnreadableFileError) as e:
        load([tmp_path], limit=1 << 20)
    assert str(e.value).count("one.log") == 1 and "no known error" in str(e.value)


def test_two_thousand_files_are_all_counted(tmp_path: Path) -> None:
    """A run has more ranks than a list of them is long.

    The sentence on how far they came counts all of them.
    """
    for i in range(260):
        (tmp_path / f"rank{i}.log").write_text(steps(3))
    told = story(tmp_path)
    assert told.stopped == "all 260 came to step 2"
    assert len(told.progress) == 200


def test_one_of_several_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the files on the command line one is a link to nothing and one may not be read.

    The others are used, and these are told. A name that does not exist at all is wrong usage.
    """
    good, link, closed = (tmp_path / name for name in ("rank0.log", "latest.log", "closed.log"))
    good.write_text(steps(3) + RAISED)
    link.symlink_to("nowhere")
    closed.write_text(RAISED)
    closed.chmod(0)
    assert main(["report", "-v", str(good), str(link), str(closed)]) == 1
    told = capsys.readouterr()
    assert "rank 0" in told.out and "latest.log: this file (a link that leads nowhere)" in " ".join(told.out.split())
    assert os.access(closed, os.R_OK) or "closed.log: this file (cannot be read: Permission denied)" in " ".join(told.out.split())
    assert main(["report", str(link)]) == 3
    assert "nothing usable: latest.log: a link that leads nowhere" in capsys.readouterr().err
    assert main(["report", str(good), str(tmp_path / "rnak1.log")]) == 2


def test_folders_that_may_not_be_looked_into(tmp_path: Path) -> None:
    """Of the folders of logs one may not be listed and one may be listed only.

    Both are told, alone and beside others.
    """
    for name, mode in (("open", 0o755), ("closed", 0), ("listed", 0o444)):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.log").write_text(steps(3) + RAISED)
        (tmp_path / name).chmod(mode)
    without_rights = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search")
    as_anybody = without_rights if os.geteuid() == 0 else ()
    if as_anybody and shutil.which("setpriv") is None:
        pytest.skip("setpriv is not there")
    try:
        for given, code in (("closed", 3), ("listed", 3), (".", 1)):
            done = subprocess.run(
                [*as_anybody, sys.executable, "-m", "ray_rl_debug", "report", "-v", given],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
                capture_output=True,
                text=True,
                timeout=60,
            )
            said = " ".join((done.stdout + done.stderr).split())
            assert done.returncode == code, said
            assert given == "listed" or ("closed:" in said and "cannot be read: Permission denied" in said)
            assert given == "closed" or ("listed.log" in said and "cannot be read: Permission denied" in said)
    finally:
        for name in ("closed", "listed"):
            (tmp_path / name).chmod(0o755)
