"""Processes of an engine: found by their titles, stopped, killed, and all gone at the end."""

from __future__ import annotations

import contextlib
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import psutil


class Late(Exception):
    """Something did not happen within its deadline."""


def until(condition: Callable[[], object], seconds: float, what: str, every: float = 0.05) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Late(f"{what}: not within {seconds:.0f} s")
        time.sleep(every)


def title(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline()).strip()
    return ""


def below(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return list(psutil.Process(pid).children(recursive=True))
    return []


def find(pid: int, pattern: str) -> int:
    """The one process below ``pid`` whose whole title matches."""
    found = [p.pid for p in below(pid) if re.fullmatch(pattern, title(p))]
    assert len(found) == 1, (pattern, [title(p) for p in below(pid)])
    return found[0]


def state(pid: int) -> str:
    """The kernel's letter; empty when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    psutil.Process(pid).send_signal(signal.SIGSTOP)
    try:
        until(lambda: state(pid) == "T", 10, f"process {pid} stops")
        yield
    finally:
        with contextlib.suppress(psutil.Error):
            psutil.Process(pid).send_signal(signal.SIGCONT)


def kill(pid: int) -> None:
    psutil.Process(pid).kill()
    until(lambda: state(pid) in ("", "Z"), 10, f"process {pid} ends")


def end(pid: int, grace_s: float = 0.0) -> None:
    """Ends a process and everything that it has started, politely first where there is time for it."""
    family = [*below(pid), psutil.Process(pid)] if psutil.pid_exists(pid) else []
    memory = shared_memory(family)
    with contextlib.suppress(psutil.Error):
        if grace_s:
            psutil.Process(pid).terminate()
            psutil.wait_procs(family, grace_s)
    for process in family:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(family, 10)
    for file in memory:
        file.unlink(missing_ok=True)


def shared_memory(family: Iterable[psutil.Process]) -> set[Path]:
    """Segments that a killed engine leaves behind: the rings of vLLM and the buffers of verl's weight transfer."""
    found: set[Path] = set()
    for process in family:
        with contextlib.suppress(OSError):
            found.update(map(Path, re.findall(r"/dev/shm/(?:psm_|verl_weights_)\S+", Path(f"/proc/{process.pid}/maps").read_text())))
    return found
