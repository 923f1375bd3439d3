"""Files that appear under their name only when they are complete. A kill in the middle leaves nothing behind."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ray_rl_debug.model.errors import OutputError

_BUFFER_BYTES = 1 << 20
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to; readable by the owner only. It gets its name when the block ends well.

    It has no name until then, so that nothing has to be removed when this process is killed. Where the file system makes no such files (NFS),
    it is a hidden one beside its place.

    Raises:
        OutputError: the folder is not writable, or the disk is full.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        nameless = _nameless(path.parent)
        if nameless is None:
            with _hidden(path) as file:
                yield file
            return
        with os.fdopen(nameless, "w+b", buffering=_BUFFER_BYTES) as file:
            yield file
            file.flush()
            _name(file, path)
    except OSError as e:
        raise OutputError(f"cannot write {path}: {e.strerror or e}") from e


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees all of it or nothing.

    Raises:
        OutputError: the folder is not writable, or the disk is full.
    """
    with whole_file(path) as file:
        file.write(data)


def _nameless(folder: Path) -> int | None:
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        return None


def _name(file: BinaryIO, path: Path) -> None:
    """Link a nameless file to its place. A file that is there already can only be replaced by one that has a name."""
    try:
        try:
            _link(file, str(path))
        except FileExistsError:
            hidden = tempfile.mktemp(dir=path.parent, prefix=f".{path.name}.")  # a link fails where the name is taken
            _link(file, hidden)
            _move(hidden, path)
    except OSError as e:
        if e.errno in _NO_SPACE:
            raise
        file.seek(0)  # no /proc, or a file system that does not link such files
        with _hidden(path) as copy:
            shutil.copyfileobj(file, copy)


def _link(file: BinaryIO, name: str) -> None:
    descriptors = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:  # with a folder Python asks the kernel to follow the link, without one it does not
        os.link(str(file.fileno()), name, src_dir_fd=descriptors, follow_symlinks=True)
    finally:
        os.close(descriptors)


@contextmanager
def _hidden(path: Path) -> Iterator[BinaryIO]:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False, buffering=_BUFFER_BYTES) as file:
        try:
            yield file  # type: ignore[misc]
        except BaseException:
            os.unlink(file.name)
            raise
    _move(file.name, path)


def _move(hidden: str, path: Path) -> None:
    try:
        os.replace(hidden, path)
    except OSError:
        os.unlink(hidden)
        raise
