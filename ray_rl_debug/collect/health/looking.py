"""May we look into processes here? Tried on a child of our own, which has nothing to lose."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from ray_rl_debug.bounded.programs import run_bounded
from ray_rl_debug.collect.permissions import find_doors, remedy
from ray_rl_debug.collect.procfs import PROC
from ray_rl_debug.collect.pyspy import find_pyspy
from ray_rl_debug.model.health import Looking

DUMP_S = 8.0
# A child may always be traced by its parent under ptrace_scope=1; a job's processes are not our children. A grandchild whose parent has
# gone is a stranger like them. It ends when we do, with the pipe.
_STRANGER = """
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
print(os.getpid(), flush=True)
sys.stdin.read()
"""


def read_looking(proc: Path = PROC) -> Looking:
    pyspy = find_pyspy()
    with subprocess.Popen([sys.executable, "-c", _STRANGER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line.strip().isdigit():
            return Looking(doors=find_doors((), proc), error="no process could be started to try it")
        return _look_at(int(line), pyspy, proc)


def _look_at(pid: int, pyspy: str | None, proc: Path) -> Looking:
    try:
        doors = find_doors((pid,), proc)
        version, error = _version(pyspy), None
        if pyspy is not None:
            done = run_bounded([pyspy, "dump", "--pid", str(pid)], DUMP_S)
            if done.code != 0:
                said = done.err.decode("utf-8", "replace").strip().splitlines()
                error = f"no answer in {DUMP_S:g} s" if done.timed_out else (said[-1][:200] if said else f"it ended with {done.code}")
        return Looking(doors=doors, pyspy=version, error=error, remedy=remedy(doors))
    finally:
        _end(pid)


def _version(pyspy: str | None) -> str | None:
    if pyspy is None:
        return None
    words = run_bounded([pyspy, "--version"], 5.0).out.decode("utf-8", "replace").split()
    return words[-1] if words else "?"


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
