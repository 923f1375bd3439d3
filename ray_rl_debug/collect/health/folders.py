"""Folders that Ray and the job write to: tried with a file and a Unix socket, which are removed again."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import socket
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

from ray_rl_debug.bounded.calls import within
from ray_rl_debug.collect.mounts import read_mounts
from ray_rl_debug.collect.procfs import PROC, read_text
from ray_rl_debug.model.health import Folder

MARK = ".rayrl-debug-mark"
MAX_SESSIONS = 200
_SESSION = re.compile(r"^session_2[\w.-]*$", re.ASCII)
"""As Ray names them: a stranger's folder of another name is not put into a command that people paste."""
FOLDER_S = 10.0
"""For all that is tried in one folder."""


def read_temp(path: Path, sessions_in_use: Iterable[str], proc: Path = PROC) -> Folder:
    """Ray's temporary folder: may be made, may hold sockets."""
    used = set(sessions_in_use)
    return _in_time(path, lambda: _read(path, _try_socket, proc, stale=tuple(s for s in _sessions(path) if s not in used)), proc)


def read_logs(path: Path, proc: Path = PROC) -> Folder:
    """The job's log folder: writable, and the same on all nodes."""
    return _in_time(path, lambda: _read_logs(path, proc), proc)


def _in_time(path: Path, read: Callable[[], Folder], proc: Path) -> Folder:
    """A file system that hangs is an error of the folder."""
    try:
        return within(FOLDER_S, read)
    except TimeoutError as e:
        return Folder(path=str(path), error=f"its file system hangs: {e.strerror}", filesystem=read_mounts(proc=proc).network(str(path)))


def _read_logs(path: Path, proc: Path) -> Folder:
    found = _read(path, _try_file, proc)
    if found.error is not None:
        return found
    return Folder(**{**{f: getattr(found, f) for f in found.__struct_fields__}, "mark": _mark(path), "clock_ahead_s": _clock_ahead(path)})


def _read(path: Path, attempt: Callable[[Path], None], proc: Path, stale: tuple[str, ...] = ()) -> Folder:
    nearest = path
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    filesystem, options = _mount(nearest, proc)
    try:
        owner_id = nearest.stat().st_uid
        room = os.statvfs(nearest)
        free: int | None = room.f_frsize * room.f_bavail
    except OSError:
        owner_id, free = -1, None
    error = None
    try:
        attempt(path)
    except OSError as e:
        error = e.strerror or str(e)
    return Folder(
        path=str(path),
        owner=user_name(owner_id),
        is_ours=owner_id == os.geteuid() if nearest == path else None,
        error=error,
        filesystem=filesystem,
        free_bytes=free,
        is_noexec="noexec" in options,
        stale=stale,
    )


def _try_socket(path: Path) -> None:
    was_there = path.is_dir()
    path.mkdir(parents=True, exist_ok=True)
    target = path / f"rd{os.getpid()}"
    try:
        # Relative to the open folder: the length of the whole path is another check's matter.
        folder = os.open(path, os.O_PATH | os.O_DIRECTORY)
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.bind(f"/proc/self/fd/{folder}/{target.name}")
        finally:
            os.close(folder)
    finally:
        with contextlib.suppress(OSError):
            target.unlink()
        if not was_there:
            with contextlib.suppress(OSError):
                path.rmdir()


def _try_file(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    target = path / f".rayrl-debug-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    try:
        target.write_text("x")
    finally:
        with contextlib.suppress(OSError):
            target.unlink()


def _mark(path: Path) -> str | None:
    """The first node to come writes a mark, all others read it."""
    own = uuid.uuid4().hex
    temporary = path / f"{MARK}.{own}"
    try:
        temporary.write_text(own)
        try:
            os.link(temporary, path / MARK)
        except FileExistsError:
            pass
        return (path / MARK).read_text("utf-8", "replace")[:32]
    except OSError:
        return None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _clock_ahead(path: Path) -> float | None:
    """This node's clock against the time stamps of the file system; on NFS they are the server's."""
    target = path / f".rayrl-debug-clock-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    try:
        before = time.time()
        target.write_text("x")
        after = time.time()
        return round((before + after) / 2 - target.stat().st_mtime, 3)
    except OSError:
        return None
    finally:
        with contextlib.suppress(OSError):
            target.unlink()


def _sessions(path: Path) -> tuple[str, ...]:
    try:
        with os.scandir(path) as entries:
            found = [e.path for e in entries if _SESSION.match(e.name) and e.is_dir(follow_symlinks=False)]
    except OSError:
        return ()
    return tuple(sorted(found)[:MAX_SESSIONS])


def _mount(path: Path, proc: Path) -> tuple[str | None, str]:
    """Type and options of the file system that holds `path`."""
    best, found = "", (None, "")
    real = str(path.resolve())
    for line in (read_text(proc / "self" / "mounts", 1 << 20) or "").splitlines():
        words = line.split(" ")
        if len(words) >= 4:
            point = words[1].replace("\\040", " ")
            if (real == point or real.startswith(point.rstrip("/") + "/")) and len(point) >= len(best):
                best, found = point, (words[2], words[3])  # type: ignore[assignment]
    return found


def user_name(uid: int) -> str | None:
    """A user's name, or the number."""
    if uid < 0:
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
