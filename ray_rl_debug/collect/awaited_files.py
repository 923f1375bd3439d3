"""Files that processes wait to go away, and who holds them open: lock files that are made, held open and removed by whoever has the lock.

The kernel knows nothing of such a lock. Whoever made the file keeps it open until its work is done, so a file that nobody holds open was
left behind by a process that was killed.
"""

from __future__ import annotations

import os
import stat as stat_module
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ray_rl_debug.bounded.calls import within
from ray_rl_debug.collect.mounts import read_mounts
from ray_rl_debug.collect.procfs import PROC, read_status
from ray_rl_debug.model.snapshot import AwaitedFile, Frame, Process

TOTAL_S = 2.0
"""For all files of a node; a machine with 400 processes takes about 0.05 s."""
MAX_FILES = 16
MAKER_BYTES = 64 << 20
"""Least memory that whoever makes such a file has used: `import torch` alone takes twice as much. The shells, agents and servers of a session,
which hide their files from their own user, take less."""

_WAITS = frozenset({("torch/utils/file_baton.py", "wait"), ("aiter/jit/utils/file_baton.py", "wait")})
"""Functions that look again and again whether a file is still there. Each of these programs keeps the file open while it has the lock."""
_NAMED_BY = {
    ("torch/utils/cpp_extension.py", "_jit_compile", "build_directory"): "lock",
    ("aiter/jit/utils/cpp_extension.py", "_jit_compile", "build_directory"): "lock",
    ("aiter/jit/core.py", "mp_lock", "lockPath"): "",
}
"""The local variable of the caller that tells the file, and the file's name below it: torch 2.13, AITER of July 2026."""


class _Awaited(NamedTuple):
    """One file as its waiters see it."""

    path: str
    pid: int
    waiters: tuple[int, ...]


def read_awaited_files(
    processes: Sequence[Process], frames: Sequence[Frame], stacks: Sequence[Sequence[int]], *, total_s: float = TOTAL_S, proc: Path = PROC
) -> tuple[AwaitedFile, ...]:
    """The files that these processes wait for, as far as `total_s` seconds go; none where nobody waits so, or the files are gone by now.

    Raises:
        TimeoutError: a file system did not answer in time.
    """
    wanted = list(_awaited(processes, frames, stacks))[:MAX_FILES]
    return within(total_s, lambda: tuple(_looked_at(wanted, proc))) if wanted else ()


def _awaited(processes: Iterable[Process], frames: Sequence[Frame], stacks: Sequence[Sequence[int]]) -> Iterator[_Awaited]:
    """By the latest stacks; the same path in two control groups counts as two files, as each container has its own."""
    found: dict[tuple[str, str | None], list[int]] = {}
    for process in processes:
        for thread in process.samples[-1].threads if process.samples else ():
            stack = [frames[i] for i in stacks[thread.stack]]
            if not any((f.file, f.function.rsplit(".", 1)[-1]) in _WAITS for f in stack[:2]):  # some versions of Python show the sleep as a frame
                continue
            for local in thread.locals:
                caller = stack[local.frame]
                name = _NAMED_BY.get((caller.file, caller.function.rsplit(".", 1)[-1], local.name))
                if name is not None:
                    found.setdefault((os.path.join(local.value[1:-1], name), process.cgroup), []).append(process.pid)
    for (path, _), pids in found.items():
        yield _Awaited(path.rstrip("/"), pids[0], tuple(dict.fromkeys(pids)))


def _looked_at(wanted: Iterable[_Awaited], proc: Path) -> Iterator[AwaitedFile]:
    for one in wanted:
        mount = read_mounts(one.pid, proc).network(one.path)
        if mount is not None:  # never touched: a server that hangs would hang us. Its maker may be on another machine as well.
            yield AwaitedFile(path=one.path, waiters=one.waiters, mount=mount)
            continue
        try:
            facts = os.stat(f"{proc}/{one.pid}/root{one.path}")
        except OSError:
            continue
        if not stat_module.S_ISREG(facts.st_mode):
            continue
        holders, unread = _holders(facts, os.path.basename(one.path), proc)
        yield AwaitedFile(path=one.path, waiters=one.waiters, made_time_s=round(facts.st_mtime, 3), holders=holders, unread=unread)


def _holders(wanted: os.stat_result, name: str, proc: Path) -> tuple[tuple[int, ...], int]:
    """Processes that hold a local file open, and how many that may have made it could not be asked."""
    holders, unread = [], 0
    for pid in sorted(int(p) for p in os.listdir(proc) if p.isdigit()):
        try:
            if any(_is_same(link, wanted, name) for link in (proc / str(pid) / "fd").iterdir()):
                holders.append(pid)
        except PermissionError:
            unread += _may_have_made(pid, wanted.st_uid, proc)
        except OSError:
            continue  # it has ended
    return tuple(holders), unread


def _is_same(link: Path, wanted: os.stat_result, name: str) -> bool:
    """Only a descriptor whose path ends in the same name is looked at: any other may lie on a mount that hangs."""
    try:
        return os.path.basename(os.readlink(link)) == name and os.path.samestat(os.stat(link), wanted)
    except FileNotFoundError:
        return False


def _may_have_made(pid: int, owner: int, proc: Path) -> bool:
    """May a process whose open files are hidden have made a file of `owner`? Only one of that user's that was ever large enough for torch."""
    status = read_status(pid, proc)
    user = status.get("Uid", "").split()[3:]  # the one by whom files are made
    peak = status.get("VmHWM", "").split()[:1]  # none: it has ended, or is the kernel's
    return user == [str(owner)] and bool(peak) and int(peak[0]) * 1024 >= MAKER_BYTES
