"""The files that paths on a command line stand for: each once, in the order of their names, and one sentence for whatever is no file."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Gap

MAX_FILES = 10_000
_SAVED = ("snapshot.json.gz", "snapshot.json")
NOWHERE = "a link that leads nowhere"
_KINDS = ((stat.S_ISFIFO, "a pipe, no file"), (stat.S_ISSOCK, "a socket, no file"), (stat.S_ISLNK, NOWHERE))


def files(paths: Sequence[Path], troubles: list[Gap]) -> Iterator[tuple[Path, str]]:
    """Each file with the name of its node; a folder that holds a snapshot of ours stands for that file alone.

    Args:
        troubles: Is given what in the folders is no file, and how many were left out.
    """
    seen: set[tuple[int, ...]] = set()
    count = 0
    for path in paths:
        if not path.is_dir():
            if not _is_known(path, seen):
                yield path, "imported"
            continue
        saved = [path / name for name in _SAVED if os.path.isfile(path / name)]  # Path.is_file raises where a folder is closed
        inside = saved[:1] or sorted(_inside(path, troubles), key=_natural)
        names: dict[Path, str] = {}
        for number, file in enumerate(inside):
            if count >= MAX_FILES:
                left = len(inside) - number
                what = f"{left:,} more file{'s' if left > 1 else ''}"
                troubles.append(Gap(id=gaps.TRUNCATED, where=path.name, what=what, reason=f"at most {MAX_FILES:,} are read"))
                break
            if _is_known(file, seen):
                continue
            count += 1
            parent = file.parent
            if parent not in names:
                names[parent] = parent.resolve().name or "imported"
            yield file, names[parent]


def _is_known(path: Path, seen: set[tuple[int, ...]]) -> bool:
    """Was the same file given under another name? Some file systems number no files: size and time must be equal as well."""
    try:
        facts = path.stat()
    except OSError:
        return False  # its reading says why
    key = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns)
    if key in seen:
        return True
    seen.add(key)
    return False


def _inside(folder: Path, troubles: list[Gap]) -> Iterator[Path]:
    def closed(e: OSError) -> None:
        name = os.path.basename(os.fspath(e.filename or folder))
        troubles.append(Gap(id=gaps.FILE_UNREAD, where=name, what="this folder", reason=f"cannot be read: {e.strerror}"))

    for root, folders, names in os.walk(folder, onerror=closed):
        for name in folders:
            path = Path(root, name)
            if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
                reason = "a link to another folder; give that folder itself"
                troubles.append(Gap(id=gaps.FILE_UNREAD, where=name, what="this folder", reason=reason))
        for name in names:
            path = Path(root, name)
            if name.startswith("."):
                continue
            if os.path.isfile(path):
                yield path
            else:
                troubles.append(Gap(id=gaps.FILE_UNREAD, where=name, what="this file", reason=_kind(path)))


def _kind(path: Path) -> str:
    try:
        mode = path.stat().st_mode
    except OSError:
        try:
            mode = path.lstat().st_mode
        except OSError as e:
            return f"cannot be read: {e.strerror}"
    return next((said for is_kind, said in _KINDS if is_kind(mode)), "no regular file")


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(path))]
