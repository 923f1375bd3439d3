"""Known errors at the end of what programs printed, where that goes to files: a program that is not in Ray has no log of Ray's."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from ray_rl_debug.bounded.calls import within
from ray_rl_debug.collect.logs import FILE_S, TAIL_BYTES, read_tail
from ray_rl_debug.collect.procfs import PROC, read_environment
from ray_rl_debug.model.snapshot import LogLine

LAST_BYTES = 32 << 10
"""Of a file, for the last words of one that has ended: two long tracebacks and what is printed around them."""
Lines = dict[int, tuple[LogLine, ...]]


class Printed:
    """Where these programs print, found while they live: one that has ended has no descriptors any more.

    Also the files that a rendered job script keeps in its LOG_DIR; there the output itself goes into a pipe.
    """

    def __init__(self, pids: Iterable[int], proc: Path = PROC) -> None:
        self._files = {pid: _files(pid, proc) for pid in pids}

    def read(self) -> Lines:
        """By pid, as it stands now."""
        # the links of descriptors are the kernel's own; a name is anybody's
        return {pid: lines for pid, files in self._files.items() if (lines := _lines(files, by_link=True))}

    def read_last(self, ended: Collection[int]) -> Lines:
        """Last words of those that have ended since, by the files' names: what was printed long before did not end them."""
        found = {pid: _lines(files, by_link=False, max_bytes=LAST_BYTES) for pid, files in self._files.items() if pid in ended}
        return {pid: lines for pid, lines in found.items() if lines}


def _lines(files: Iterable[tuple[Path, str]], *, by_link: bool, max_bytes: int = TAIL_BYTES) -> tuple[LogLine, ...]:
    lines: list[LogLine] = []
    for path, name in files:
        is_link = path.parent.name == "fd"
        try:
            tail = read_tail(path if by_link else Path(name), max_bytes=max_bytes, follow=by_link and is_link)
            lines += (msgspec.structs.replace(line, file=name) for line in tail)
        except OSError:
            continue
    return tuple(dict.fromkeys(lines))


def _files(pid: int, proc: Path) -> list[tuple[Path, str]]:
    files = []
    for number in (1, 2):
        path = proc / str(pid) / "fd" / str(number)
        try:
            if stat.S_ISREG(within(FILE_S, path.stat).st_mode):
                files.append((path, os.readlink(path)))
        except OSError:
            continue
    environment = dict(read_environment(pid, proc) or ())
    if not files and "SLURM_JOB_ID" in environment and environment.get("LOG_DIR", "").startswith("/"):
        kept = (Path(environment["LOG_DIR"], f"{name}.log") for name in ("driver", f"start-{environment.get('SLURMD_NODENAME', '')}"))
        files = [(path, str(path)) for path in kept]
    return list({name: (path, name) for path, name in files}.values())
