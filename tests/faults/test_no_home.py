"""A user without a home: no HOME, and a number that the system has no name for, as in many containers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ray_rl_debug.collect.health.software import read_auth
from ray_rl_debug.collect.ray_token import find_token

NOBODY = ("unshare", "--user", "--map-user=54321")
ROOT = Path(__file__).resolve().parents[2]


def test_every_command_works_without_a_home() -> None:
    """The user has no HOME and no entry in the table of users.
    A snapshot and the doctor end with a document, and no error of ours is in it."""
    me: dict[str, Any] = {"env": {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}, "cwd": "/"}
    if subprocess.run([*NOBODY, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs user namespaces, to be a user without a name")
    program = [*NOBODY, sys.executable, "-c", "import os; print(os.getpid(), flush=True); input()"]
    target = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **me)
    try:
        assert target.stdout is not None
        pid = target.stdout.readline().decode().strip()
        for arguments in (["snapshot", "--pid", pid, "--samples", "1", "--json"], ["doctor", "--here", "--json"]):
            argv = [*NOBODY, sys.executable, "-m", "ray_rl_debug", *arguments]
            done = subprocess.run(argv, capture_output=True, check=False, timeout=150, **me)
            assert done.returncode in (0, 1, 3), done.stderr
            document = json.loads(done.stdout)
            assert "error" not in document and "RRD919" not in done.stdout.decode(), done.stdout
    finally:
        target.kill()
        target.communicate(timeout=10)


def test_a_token_is_looked_for_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no home in which Ray's token could lie.
    None is found, and none of the questions for it fails."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", no_such_user)
    assert find_token({}) is None
    assert read_auth({}).source is None


def no_such_user(number: int) -> None:
    raise KeyError(f"getpwuid(): uid not found: {number}")
