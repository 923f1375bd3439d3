"""The current folder holds modules of anybody, under the names of those that we and Ray import."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ray_rl_debug.bounded.own_python import PLAIN_PATH, own_module, own_program

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
COMMAND = shutil.which("rayrl-debug", path=str(Path(sys.executable).parent))
NAMES = ("json", "ray", "click", "msgspec", "psutil", "pynvml", "runpy", "resource")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Each module there leaves a mark when it is run."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / name)!r}, 'w').close()\n")
    return tmp_path


def marks(folder: Path) -> set[str]:
    return {name for name in NAMES if (folder / name).exists()}


@pytest.mark.parametrize("arguments", [["doctor", "--preflight"], ["snapshot", "--here", "--samples", "1"], ["metrics", "none.jsonl"]])
def test_a_command_runs_nothing_of_it(folder: Path, arguments: list[str]) -> None:
    """A command is given there, by a user who may write everywhere.
    None of these modules is run, in none of our processes."""
    if COMMAND is None:
        pytest.skip("the command is not installed beside this Python")
    subprocess.run([COMMAND, *arguments], cwd=folder, env=ENVIRONMENT, capture_output=True, check=False, timeout=120)
    assert not marks(folder)


def test_programs_of_ours_run_nothing_of_it(folder: Path) -> None:
    """We start programs of our own there, from a line and from a module.
    They find what we find, and none of these modules."""
    for command in (
        own_program("import json; print(json.__file__)"),
        own_module("json.tool"),
        [sys.executable, "-c", f"{PLAIN_PATH}import json, ray"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60, input="{}")
        assert done.returncode == 0, done.stderr
        assert str(folder) not in done.stdout
    assert not marks(folder)
