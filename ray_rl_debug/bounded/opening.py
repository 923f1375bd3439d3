"""Open files of other people: what runs as root must not follow a link of theirs, wait on a FIFO, or become the reader of one.

A look before the open proves nothing, since the name may be given to another file meanwhile: everything is checked on the open file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection
from io import BufferedReader
from pathlib import Path

NOT_REGULAR = "not a regular file"


def open_regular(path: Path | str, *, follow: bool = False, owners: Collection[int] | None = None) -> BufferedReader:
    """A regular file to read. Anything else is only looked at: opening a FIFO would take the bytes that its reader waits for.

    Args:
        path: Links among its folders are followed.
        follow: Also a link that the name itself is.
        owners: Users who may own the file; None for all.

    Raises:
        OSError: it is no regular file, belongs to somebody else, or cannot be opened.
    """
    return open(open_descriptor(path, follow=follow, owners=owners), "rb")


def open_descriptor(path: Path | str, *, follow: bool = False, owners: Collection[int] | None = None) -> int:
    """As `open_regular`, a bare descriptor."""
    mark = os.open(path, os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        _check(os.fstat(mark), owners)
        return os.open(f"/proc/self/fd/{mark}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    finally:
        os.close(mark)


def open_own(folder: Path, name: str, owner: int) -> int:
    """A descriptor to read and write a file that only `owner` can have put there: no links anywhere, and no other name.

    Raises:
        OSError: the folder or the file is a link, belongs to somebody else, has a second name, or cannot be opened.
    """
    below = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(below).st_uid != owner:
            raise PermissionError(errno.EPERM, "the folder belongs to somebody else")
        file = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=below)
    finally:
        os.close(below)
    try:
        facts = os.fstat(file)
        _check(facts, (owner,))
        if facts.st_nlink != 1:
            raise PermissionError(errno.EPERM, "the file has another name")
    except OSError:
        os.close(file)
        raise
    return file


def _check(facts: os.stat_result, owners: Collection[int] | None) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise OSError(errno.EINVAL, NOT_REGULAR)
    if owners is not None and facts.st_uid not in owners:
        raise PermissionError(errno.EPERM, "the file belongs to somebody else")
