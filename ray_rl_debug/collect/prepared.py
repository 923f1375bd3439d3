"""Stacks of a process that `ray_rl_debug.in_job.prepare` has opened: it writes them itself when it gets a signal. For where ptrace is forbidden."""

from __future__ import annotations

import os
import time
from pathlib import Path

from ray_rl_debug.bounded.opening import open_own
from ray_rl_debug.collect.procfs import PROC, read_stat, read_status, read_text
from ray_rl_debug.formats import faulthandler
from ray_rl_debug.in_job.prepare import FOLDER, SIGNAL, stack_file

MAX_BYTES = 4 << 20
QUIET_S = 0.03
"""The stacks are complete when the file has not grown for this long and the process sleeps again."""
QUIET_RUNNING_S = 0.3
"""The same for one that still runs: it may be busy, or on a full machine have been put aside in the middle of its stacks."""

Thread = tuple[str | None, bool | None, tuple[tuple[str, str, int], ...]]
"""Name, whether it was executing, and its frames (function, file, line), innermost first."""


def read_stacks(pid: int, *, timeout_s: float = 1.0, proc: Path = PROC, folder: Path = FOLDER) -> tuple[Thread, ...] | None:
    """The threads of a prepared process, the main thread first; None when it is not prepared or does not answer.

    The signal goes only to a process that catches it and whose file is there: to others it would be deadly.
    """
    file = _open_file_of(pid, proc, folder)
    if file is None:
        return None
    try:
        if not _catches(pid, proc):
            return None
        os.ftruncate(file, 0)
        os.kill(pid, SIGNAL)
        text = _wait_for(file, proc / str(pid), timeout_s)
        os.ftruncate(file, 0)
    except OSError:
        return None
    finally:
        os.close(file)
    dumps = faulthandler.read(text.splitlines())
    if not dumps:
        return None
    return tuple((t.name, t.owns_gil, tuple(t.frames)) for t in reversed(dumps[0].threads))


def _open_file_of(pid: int, proc: Path, folder: Path) -> int | None:
    """The file that a process writes its stacks to. We may be root and its owner may be our enemy: see `open_own`."""
    status, stat = read_status(pid, proc), read_stat(proc / str(pid))
    if stat is None or stat.state in ("T", "t", "Z", "X", "D"):
        return None  # it would answer when it runs again, when nobody listens any more
    inner, uid = (status.get("NSpid") or str(pid)).split()[-1], status.get("Uid", "").split()
    if not inner.isdigit() or not uid:
        return None
    # A user namespace shows the owner under another number than the process knows itself by.
    for owner in dict.fromkeys((int(uid[0]), *_outer_ids(proc))):
        path = stack_file(int(inner), stat.start_ticks, owner, folder)
        try:
            return open_own(path.parent, path.name, int(uid[0]))
        except OSError:
            continue
    return None


def _outer_ids(proc: Path) -> tuple[int, ...]:
    """What our own user is called outside of our user namespace."""
    rows = (line.split() for line in (read_text(proc / "self" / "uid_map") or "").splitlines())
    return tuple(int(row[1]) + os.getuid() - int(row[0]) for row in rows if len(row) == 3 and int(row[0]) <= os.getuid() < int(row[0]) + int(row[2]))


def _catches(pid: int, proc: Path) -> bool:
    caught = read_status(pid, proc).get("SigCgt", "0")
    return bool(int(caught, 16) >> (SIGNAL - 1) & 1)


def _wait_for(file: int, process: Path, timeout_s: float) -> str:
    until, size, changed = time.monotonic() + timeout_s, 0, time.monotonic()
    while (now := time.monotonic()) < until and not (size and _is_complete(now - changed, process)):
        time.sleep(0.005)
        found = os.fstat(file).st_size
        if found != size:
            size, changed = found, now
    return os.pread(file, MAX_BYTES, 0).decode("utf-8", "replace")


def _is_complete(quiet_s: float, process: Path) -> bool:
    if quiet_s <= QUIET_S:
        return False
    stat = read_stat(process)
    return stat is None or stat.state == "S" or quiet_s > QUIET_RUNNING_S
