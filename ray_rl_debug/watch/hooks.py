"""A command of the user, in a shell, within its time; at its end nothing that it started is left."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from ray_rl_debug.collect.procfs import PROC, list_pids, read_bytes

MARK = "RAYRL_DEBUG_HOOK"
"""A variable that all inherit whom the command starts, also those that leave its session."""
PATIENCE_S = 2.0
"""Between asking and killing, and for the kernel to end them."""


def run_hook(command: str, environment: Mapping[str, str], timeout_s: float, *, patience_s: float = PATIENCE_S) -> str | None:
    """Run it; one sentence when it did not end well.

    After `timeout_s` seconds it is ended with everything it started: first asked, then killed.
    """
    mark = uuid.uuid4().hex
    try:
        shell = subprocess.Popen(command, shell=True, env={**environment, MARK: mark}, stdin=subprocess.DEVNULL, stdout=2, start_new_session=True)
    except (OSError, ValueError) as e:  # ValueError: NUL or half a character in the command
        return f"could not be started: {getattr(e, 'strerror', None) or e}"
    try:
        code = shell.wait(timeout_s)
    except subprocess.TimeoutExpired:
        left = _end_all(shell, mark, patience_s)
        return f"was ended after {timeout_s:.0f} s" + (f"; {left} of its processes cannot be ended" if left else "")
    return f"ended with {code}" if code != 0 else None


def _end_all(shell: subprocess.Popen[bytes], mark: str, patience_s: float) -> int:
    """How many are left: in the kernel, or of another user."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + patience_s
        told: set[int] = set()
        while left := [pid for pid in _of_hook(shell.pid, mark) if not _is_ended(shell, pid)]:
            for pid in left:
                if pid not in told or number == signal.SIGKILL:
                    told.add(pid)
                    _send(pid, number, shell.pid, mark)
            if time.monotonic() > until:
                break
            time.sleep(0.02)
    return len([pid for pid in _of_hook(shell.pid, mark) if not _is_ended(shell, pid)])


def _is_ended(shell: subprocess.Popen[bytes], pid: int) -> bool:
    return pid == shell.pid and shell.poll() is not None


def _of_hook(session: int, mark: str, proc: Path = PROC) -> Iterator[int]:
    return (pid for pid in list_pids(proc) if pid != os.getpid() and _belongs(pid, session, mark, proc))


def _belongs(pid: int, session: int, mark: str, proc: Path = PROC) -> bool:
    try:
        if os.getsid(pid) == session:
            return (read_bytes(proc / str(pid) / "stat", 512) or b"").rpartition(b")")[2].split()[:1] not in ([b"Z"], [b"X"], [])
    except OSError:
        return False
    return f"{MARK}={mark}".encode() in (read_bytes(proc / str(pid) / "environ", 1 << 20) or b"").split(b"\0")


def _send(pid: int, number: int, session: int, mark: str) -> None:
    """To this process and no other: the descriptor stays with it when its number is given to another."""
    try:
        held = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if _belongs(pid, session, mark):
            signal.pidfd_send_signal(held, number)
    except OSError:
        pass
    finally:
        os.close(held)
