"""Optional help from inside: one line in the job's runtime environment, and no permission of the node stands in the way of its stacks.

    ray.init(runtime_env={"worker_process_setup_hook": "ray_rl_debug.prepare.open_doors"})

Every Ray worker then lets processes of its own user attach (what ``ptrace_scope=1`` forbids otherwise), and writes its stacks to a file when
it gets a signal (which works where attaching is forbidden altogether). Standard library only; nothing runs until somebody looks.

What is given away: until the process ends, every process of the same user on its node may attach to it, read its memory with all secrets in it,
change it and stop it, as without Yama. Other users and other user namespaces may not.
"""

from __future__ import annotations

import ctypes
import faulthandler
import fcntl
import os
import signal
import time
from pathlib import Path
from typing import BinaryIO

PR_SET_PTRACER = 0x59616D61
PR_SET_PTRACER_ANY = ctypes.c_ulong(-1)
SIGNAL = signal.SIGRTMIN + 12
"""A real-time signal: inference engines, schedulers and MPI have uses of their own for SIGUSR1 and SIGUSR2."""
FOLDER = Path("/tmp")
"""The same for all processes of a node; ``TMPDIR`` differs between workers."""
CREATE_TRIES = 8

_open: dict[str, BinaryIO] = {}


def open_doors() -> None:
    """Open this process, and children that it forks, for inspection by its own user. Never raises; calling it again does no harm."""
    try:
        _open_here()
        if "hook" not in _open:
            _open["hook"] = open(os.devnull, "rb")  # noqa: SIM115 a mark that stays
            os.register_at_fork(after_in_child=_open_here)
    except Exception:  # noqa: BLE001 a job must not fail because nobody can look at it
        pass


def stack_file(pid: int, start_ticks: int, uid: int, folder: Path = FOLDER) -> Path:
    """Where a prepared process writes its stacks: pid as it sees it itself, and its start, which together name one process for ever."""
    return folder / f"rayrl-debug-{uid}" / f"{pid}-{start_ticks}.stacks"


def _open_here() -> None:
    try:
        _allow_attach()
        _write_stacks_on_signal()
    except Exception:  # noqa: BLE001 as above; also in a child that was just forked
        pass


def _allow_attach() -> None:
    """Any process of our user may attach from now on; PR_SET_PTRACER knows one process or all, and who will look is not known yet.

    Kernels without Yama answer with an error: there is nothing to allow then.
    """
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0)


def _write_stacks_on_signal() -> None:
    if "stacks" not in _open and signal.getsignal(SIGNAL) is not signal.SIG_DFL:
        return  # the program uses this signal itself
    path = stack_file(os.getpid(), _start_ticks(), os.getuid())
    path.parent.mkdir(mode=0o700, exist_ok=True)
    # Checked on the open folder: in a folder that all may write to, its name may lead elsewhere a moment later.
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(folder).st_uid != os.getuid():
            return  # somebody else's trap
        file = _create(path.name, folder)
        faulthandler.register(SIGNAL, file=file, all_threads=True, chain=False)
        _open["stacks"] = file
        for name in os.listdir(folder):
            if name.endswith(".stacks"):
                _remove_if_left_behind(name, folder)
    finally:
        os.close(folder)


def _create(name: str, folder: int) -> BinaryIO:
    """The file, locked for as long as this process lives, so that others see whose it is even from another container."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    for _ in range(CREATE_TRIES):
        file = os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "ab", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            held_by_a_remover = False
        except OSError as e:  # some file systems know no locks: nobody removes anything there
            held_by_a_remover = isinstance(e, BlockingIOError)
        if not held_by_a_remover and os.fstat(file.fileno()).st_nlink:
            return file
        file.close()
        time.sleep(0.001)
    raise FileNotFoundError(name)


def _remove_if_left_behind(name: str, folder: int) -> None:
    """Remove the file of a process that has ended: the one that nobody holds a lock on. Others may be doing the same at this moment."""
    try:
        with open(os.open(name, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder), "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(name, dir_fd=folder)
    except OSError:
        pass


def _start_ticks() -> int:
    return int(Path("/proc/self/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19])
