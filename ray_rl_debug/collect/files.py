"""Open files, FIFOs and pipes of a process, and the node's file locks."""

from __future__ import annotations

import os
import re
import stat as stat_module
from pathlib import Path

from ray_rl_debug.collect.mounts import Mounts, read_mounts
from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.snapshot import FileLock, OpenFile

MAX_FILES = 200
_BORING = re.compile(r"^(/dev/null|/dev/urandom|/dev/random|anon_inode:|socket:|/proc/|/sys/|/memfd:|/dev/pts|/dev/zero)")
# one who waits behind another waiter stands further to the right
_LOCK = re.compile(r"^(\d{1,20}): +(-> )?(\w+)\s+\w+\s+(\w+) (-?\d{1,20}) ([0-9a-f]+:[0-9a-f]+):(\d{1,20})", re.ASCII)


class FileReader:
    """Reads descriptors of processes; the mount table once per mount namespace."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._mounts: dict[str, Mounts] = {}

    def read(self, pid: int) -> tuple[OpenFile, ...] | None:
        """Files that `pid` holds open; None when that may not be read. A file on a network mount is never touched, only named."""
        folder = self._proc / str(pid) / "fd"
        try:
            names = sorted(os.listdir(folder), key=lambda n: int(n) if n.isdigit() else 0)
        except OSError:
            return None
        mounts = self._mounts_of(pid)
        found: list[OpenFile] = []
        for name in names:
            try:
                path = os.readlink(folder / name)
            except PermissionError:
                return None  # the folder may be listed by its owner even where ptrace access is refused
            except OSError:
                continue
            if _BORING.match(path) or len(found) >= MAX_FILES:
                continue
            mount = mounts.network(path) if path.startswith("/") else None
            found.append(self._one(folder / name, int(name), path, mount))
        return tuple(found)

    def _one(self, link: Path, fd: int, path: str, mount: str | None) -> OpenFile:
        if path.startswith("pipe:["):
            return OpenFile(fd=fd, path=path, kind="pipe", inode=int(path[6:-1]), writable=self._writable(link, fd))
        if mount is not None:  # stat of a file on a hung mount would hang us
            return OpenFile(fd=fd, path=path, kind="file", mount=mount, writable=self._writable(link, fd))
        try:
            facts = os.stat(link)
        except OSError:
            return OpenFile(fd=fd, path=path, kind="file")
        kind = "fifo" if stat_module.S_ISFIFO(facts.st_mode) else "device" if stat_module.S_ISCHR(facts.st_mode) else "file"
        device = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}"
        return OpenFile(fd=fd, path=path, kind=kind, inode=facts.st_ino, device=device, writable=self._writable(link, fd))

    def _writable(self, link: Path, fd: int) -> bool | None:
        text = read_text(link.parent.parent / "fdinfo" / str(fd), 4096) or ""
        found = re.search(r"^flags:\s+0?(\d+)", text, re.MULTILINE)
        return bool(int(found[1], 8) & 3) if found else None

    def _mounts_of(self, pid: int) -> Mounts:
        try:
            namespace = os.readlink(self._proc / str(pid) / "ns" / "mnt")
        except OSError:
            return Mounts("")
        if namespace not in self._mounts:
            self._mounts[namespace] = read_mounts(pid, self._proc)
        return self._mounts[namespace]


def read_locks(proc: Path = PROC) -> tuple[FileLock, ...]:
    """All rows of /proc/locks: holders, and waiters marked as such."""
    found = []
    for line in (read_text(proc / "locks") or "").splitlines():
        row = _LOCK.match(line.strip())
        if row is not None:
            number, arrow, kind, access, pid, device, inode = row.groups()
            found.append(
                FileLock(lock=int(number), kind=kind, access=access, pid=int(pid), device=device, inode=int(inode), waiting=arrow is not None)
            )
    return tuple(found)
