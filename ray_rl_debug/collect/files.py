"""Open files, FIFOs, pipes, descriptors of the kernel's own, and shared memory of a process, and the node's file locks.

Pipes, eventfds and segments in /dev/shm tell who works together: a multiprocessing pool, an engine and its workers hold the same ones.
"""

from __future__ import annotations

import os
import re
import stat as stat_module
from pathlib import Path

from ray_rl_debug.collect.mounts import Mounts, read_mounts
from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.model.foreign_text import as_text
from ray_rl_debug.model.snapshot import MAX_FILES, FileLock, OpenFile

MAX_SHARED = 512
"""Kept per process of what it can share with others: pipes, FIFOs, eventfds, segments of shared memory."""
SHARED_MEMORY = "/dev/shm/"
_EVENTFD = "anon_inode:[eventfd]"
_OF_KERNEL = re.compile(r"^(?:anon_inode:)?\[?(inotify|timerfd|pidfd)\b")
"""Who reads one of these waits for what the kernel tells: news of files, a moment, the end of a process."""
_WATCHED = re.compile(r"^inotify wd:\w+ ino:([0-9a-f]+) sdev:([0-9a-f]+)", re.MULTILINE)
MAX_WATCHED = 64
_OWN_LOCK = re.compile(r"^lock:\s+\d{1,20}: OFDLCK ", re.MULTILINE)
"""A lock that belongs to the open file, in what the kernel tells of a descriptor. It has no owner in the table of all locks."""
_PLASMA = "/dev/shm/plasma"
"""Ray's object store: every process of a node maps it."""
_MASTER = "/dev/ptmx"
"""Whoever opens it has a terminal for others."""
_MAPPED = re.compile(rf"^\S+ \S+ \S+ ([0-9a-f]+:[0-9a-f]+) (\d+)\s+({SHARED_MEMORY}.+)$", re.MULTILINE)
_BORING = re.compile(r"^(/dev/null|/dev/urandom|/dev/random|anon_inode:|socket:|/proc/|/sys/|/memfd:|/dev/zero)")
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
        shared: list[OpenFile] = []
        for name in names:
            try:
                path = as_text(os.readlink(folder / name))
            except PermissionError:
                return None  # the folder may be listed by its owner even where ptrace access is refused
            except OSError:
                continue
            is_shared = path.startswith(("pipe:[", _EVENTFD, SHARED_MEMORY))
            kept, most = (shared, MAX_SHARED) if is_shared else (found, MAX_FILES)
            of_kernel = _OF_KERNEL.match(path)
            if len(kept) >= most or (_BORING.match(path) and not is_shared and of_kernel is None):
                continue
            if of_kernel is not None:
                kept.append(self._of_kernel(folder / name, int(name), of_kernel[1]))
                continue
            mount = mounts.network(path) if path.startswith("/") else None
            one = self._one(folder / name, int(name), path, mount)
            if one is not None:
                kept.append(one)
        held = {(f.device, f.inode) for f in shared}
        mapped = [f for f in self._mapped(pid) if (f.device, f.inode) not in held]
        return (*sorted((*found, *shared), key=lambda f: f.fd or 0), *mapped[: MAX_SHARED - len(shared)])

    def _one(self, link: Path, fd: int, path: str, mount: str | None) -> OpenFile | None:
        if path.startswith("pipe:["):
            return OpenFile(fd=fd, path=path, kind="pipe", inode=int(path[6:-1]), writable=self._writable(link, fd))
        if path == _EVENTFD:  # all have the same inode; Linux 5.2 and newer number them
            number = _number(self._info(link, fd), r"^eventfd-id:\s+(\d+)")
            return OpenFile(fd=fd, path=f"eventfd:[{number}]", kind="eventfd") if number is not None else None
        if mount is not None:  # stat of a file on a hung mount would hang us
            return OpenFile(fd=fd, path=path, kind="file", mount=mount, writable=self._writable(link, fd))
        try:
            facts = os.stat(link)
        except OSError:
            return OpenFile(fd=fd, path=path, kind="file")
        kind = "fifo" if stat_module.S_ISFIFO(facts.st_mode) else "device" if stat_module.S_ISCHR(facts.st_mode) else "file"
        device = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}"
        written = facts.st_mtime if fd in (1, 2) and stat_module.S_ISREG(facts.st_mode) else None
        text = self._info(link, fd)
        return OpenFile(
            fd=fd,
            path=path,
            kind=kind,
            inode=facts.st_ino,
            device=device,
            writable=_is_writable(text),
            written_time_s=written,
            is_locked=True if _OWN_LOCK.search(text) is not None else None,
            terminal=self._terminal(link, fd, path),
        )

    def _of_kernel(self, link: Path, fd: int, kind: str) -> OpenFile:
        text = self._info(link, fd, 1 << 17)
        left = re.search(r"^it_value: \((\d+), (\d+)\)", text, re.MULTILINE)
        fires = int(left[1]) + int(left[2]) / 1e9 if left is not None else 0.0
        pid = _number(text, r"^Pid:\s+(\d+)")
        watched = _WATCHED.findall(text) if text and kind == "inotify" else None
        return OpenFile(
            fd=fd,
            path=kind,
            kind=kind,
            watches=len(watched) if watched is not None else None,
            watched=tuple(_identity(sdev, inode) for inode, sdev in (watched or ())[:MAX_WATCHED]),
            fires_in_s=round(fires, 3) or None,
            of_pid=int(pid or 0) or None,
        )

    def _terminal(self, link: Path, fd: int, path: str) -> int | None:
        number = path.removeprefix("/dev/pts/") if path.startswith("/dev/pts/") else None
        if path == _MASTER or number == "ptmx":  # Linux 4.15 and newer say of which terminal it is the master
            number = _number(self._info(link, fd), r"^tty-index:\s+(\d+)")
        return int(number) if number is not None and number.isdigit() else None

    def _mapped(self, pid: int) -> list[OpenFile]:
        """Segments of shared memory that are mapped, each once; the descriptors of most are closed once they are."""
        text = read_text(self._proc / str(pid) / "maps", 8 << 20) or ""
        rows = dict.fromkeys(m.groups() for m in _MAPPED.finditer(text) if not m[3].startswith(_PLASMA))
        return [OpenFile(path=path, kind="file", device=device, inode=int(inode)) for device, inode, path in rows]

    def _writable(self, link: Path, fd: int) -> bool | None:
        return _is_writable(self._info(link, fd))

    def _info(self, link: Path, fd: int, most: int = 4096) -> str:
        return read_text(link.parent.parent / "fdinfo" / str(fd), most) or ""

    def _mounts_of(self, pid: int) -> Mounts:
        try:
            namespace = os.readlink(self._proc / str(pid) / "ns" / "mnt")
        except OSError:
            return Mounts("")
        if namespace not in self._mounts:
            self._mounts[namespace] = read_mounts(pid, self._proc)
        return self._mounts[namespace]


def _identity(sdev: str, inode: str) -> str:
    device = int(sdev, 16)
    return f"{device >> 20:02x}:{device & 0xFFFFF:02x} {int(inode, 16)}"


def _is_writable(text: str) -> bool | None:
    flags = _number(text, r"^flags:\s+0?(\d+)")
    return bool(int(flags, 8) & 3) if flags is not None else None


def _number(text: str, pattern: str) -> str | None:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else None


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
