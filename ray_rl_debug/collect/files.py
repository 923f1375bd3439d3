"""Open files, FIFOs and pipes of a process, and the node's file locks."""

from __future__ import annotations

import os
import re
import stat as stat_module
from pathlib import Path

from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.foreign_text import as_text
from ray_rl_debug.snapshot import FileLock, OpenFile

MAX_FILES = 200
_BORING = re.compile(r"^(/dev/null|/dev/urandom|/dev/random|anon_inode:|socket:|/proc/|/sys/|/memfd:|/dev/pts|/dev/zero)")
_NETWORK_MOUNTS = ("nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "9p")
_OCTAL = re.compile(r"\\(0[0-7]{2}|134)")
# one who waits behind another waiter stands further to the right
_LOCK = re.compile(r"^(\d+): +(-> )?(\w+)\s+\w+\s+(\w+) (-?\d+) ([0-9a-f]+:[0-9a-f]+):(\d+)")


class FileReader:
    """Reads descriptors of processes; the mount table once per mount namespace."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._mounts: dict[str, list[tuple[str, str]]] = {}

    def read(self, pid: int) -> tuple[OpenFile, ...] | None:
        """Files that `pid` holds open; None when that may not be read. A file on a network mount is never touched, only named."""
        folder = self._proc / str(pid) / "fd"
        try:
            names = sorted(os.listdir(folder), key=lambda n: int(n) if n.isdigit() else 0)
        except OSError:
            return None
        mounts = self._network_mounts(pid)
        found: list[OpenFile] = []
        for name in names:
            try:
                path = as_text(os.readlink(folder / name))
            except PermissionError:
                return None  # the folder may be listed by its owner even where ptrace access is refused
            except OSError:
                continue
            if _BORING.match(path) or len(found) >= MAX_FILES:
                continue
            mount = next((m for at, m in mounts if path == at or path.startswith(at.rstrip("/") + "/")), None)
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

    def _network_mounts(self, pid: int) -> list[tuple[str, str]]:
        try:
            namespace = os.readlink(self._proc / str(pid) / "ns" / "mnt")
        except OSError:
            return []
        if namespace not in self._mounts:
            rows = [line.split() for line in (read_text(self._proc / str(pid) / "mounts") or "").splitlines()]
            wanted = (r for r in rows if len(r) > 2 and r[1] != "/" and (r[2] in _NETWORK_MOUNTS or r[2].startswith("fuse")))
            self._mounts[namespace] = [(_without_octal(r[1]), f"{r[2]} {r[0]}") for r in wanted]
        return self._mounts[namespace]


def _without_octal(text: str) -> str:
    """The kernel writes a space in the mount table as ``\\040``."""
    return _OCTAL.sub(lambda m: chr(int(m[1], 8)), text)


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
