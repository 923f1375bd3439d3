"""Standard streams and descriptors: what a shell closes, fills or limits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("limit", [4, 5, 6])
def test_few_descriptors_are_enough_or_are_told_with_their_cure(limit: int, tmp_path: Path) -> None:
    """The shell lets a process open four to six files.
    There is the report, or one sentence with the command that raises the limit."""
    (tmp_path / "dump.txt").write_text('Thread 12 (idle): "MainThread"\n    f (a.py:1)\n')
    script = f"import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit})); "
    script += "from ray_rl_debug.commands.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", script, "report", str(tmp_path / "dump.txt")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert "OSError" not in done.stderr
    assert done.returncode in (1, 3), done.stderr
    assert "if this run hangs" in done.stdout or "no verdict" in done.stdout or "ulimit -n 1024" in done.stderr


@pytest.mark.parametrize("arguments", [["report", "DUMP"], ["report", "--json", "DUMP"], ["explain", "RRD101"], ["report", "/nowhere"]])
@pytest.mark.parametrize("where", [">&-", "> /dev/full", "<&- >&-", ">&- 2>&-"])
def test_a_standard_output_that_takes_nothing(arguments: list[str], where: str, tmp_path: Path) -> None:
    """Standard streams are closed by the shell, or standard output is a full device.
    No backtrace and no error of Python's: the exit code as ever, or one sentence."""
    dump = tmp_path / "dump.txt"
    dump.write_text('Thread 12 (idle): "MainThread"\n    f (a.py:1)\n')
    words = " ".join(str(dump) if word == "DUMP" else word for word in arguments)
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m ray_rl_debug {words} {where}"], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert "NoneType" not in done.stderr
    assert "OSError" not in done.stderr
    assert done.returncode in (0, 1, 2, 3), done.stderr
    if where == "> /dev/full" and arguments != ["report", "/nowhere"]:
        assert "standard output takes nothing more" in done.stderr
        assert done.returncode == 3


def test_a_companion_that_may_open_few_files_says_so() -> None:
    """The shell lets the companion open eight files, with which Ray's client aborts.
    It says so at once, with the command that raises the limit, and is not started again and again."""
    script = "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8)); from ray_rl_debug.commands.cli import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", script, "watch", "--address", "127.0.0.1:1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert "may open 8 files, and needs 128" in done.stderr
    assert "ulimit -n" in done.stderr


@pytest.mark.parametrize("format_", ["terminal", "json"])
def test_a_report_whose_files_cannot_be_written(format_: str, tmp_path: Path) -> None:
    """The folder for the files of a report cannot be written.
    The report is shown, and the error stands behind it."""
    dump = tmp_path / "dump.txt"
    dump.write_text('Thread 12 (idle): "MainThread"\n    f (a.py:1)\n')
    command = [sys.executable, "-m", "ray_rl_debug", "report", "--format", format_, "-o", "/dev/full/x", str(dump)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "a.py" in done.stdout
    assert "RRD958" in done.stderr
    assert done.returncode == 3
    if format_ == "json":
        assert "error" not in json.loads(done.stdout)
