"""What the machine, or a limit of the shell, refuses us: said in words, with the command that cures it."""

from __future__ import annotations

import errno
import resource

from ray_rl_debug.model.errors import ShortageError

_SHORT = {
    errno.EMFILE: ("this process may not open as many files as it needs", "raise the limit of this shell: ulimit -n 1024"),
    errno.ENFILE: (
        "the machine has no open file left to give",
        "look for who holds so many: lsof | awk '{print $2}' | sort | uniq -c | sort -n | tail",
    ),
    errno.ENOMEM: (
        "no memory is left for this process",
        "raise the limit of this shell (ulimit -v unlimited), or read the saved files on another machine: rayrl-debug report FILE",
    ),
    errno.EAGAIN: ("no further process or thread may be started here", "raise the limits of this shell: ulimit -u 4096 -v unlimited"),
    errno.EFBIG: ("a file may not become as large as it has to", "raise the limit of this shell: ulimit -f unlimited"),
    errno.ENOSPC: ("no space is left on a disk", "free space (df -h), or name another folder with -o or TMPDIR"),
    errno.EDQUOT: ("the quota of this user is used up", "free space (quota), or name another folder with -o or TMPDIR"),
}


def shortage(error: BaseException) -> tuple[str, str] | None:
    """What is short, and what to do; None for every other error."""
    if isinstance(error, MemoryError):
        return _SHORT[errno.ENOMEM]
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return _SHORT[errno.EAGAIN]
    found = _SHORT.get(error.errno) if isinstance(error, OSError) and error.errno is not None else None
    if found is None or not isinstance(error, OSError):
        return None
    return (f"{found[0]} ({error.filename})" if isinstance(error.filename, str) else found[0]), found[1]


def require_descriptors(count: int) -> None:
    """See to it that this process and its children may open so many files; Ray's client ends them without a word where it gets none.

    Raises:
        ShortageError: the limit is lower, and we may not raise it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    if hard != resource.RLIM_INFINITY and hard < count:
        raise ShortageError(f"this process may open {soft} files, and needs {count}", hint=_SHORT[errno.EMFILE][1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
