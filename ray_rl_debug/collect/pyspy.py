"""py-spy: find it, run it within a deadline, and never leave its target stopped.

A blocking dump stops the target for some milliseconds and shows one consistent moment. It fails on a stopped or traced target and waits
without end for a thread in uninterruptible sleep (state D), so those are read with ``--nonblocking``.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ray_rl_debug.collect.bounded import MAX_OUTPUT_BYTES, Finished, run_bounded

_SIGSTOP_BIT = 1 << (signal.SIGSTOP - 1)


class RawLocal(msgspec.Struct):
    """One local variable as py-spy prints it; ``addr`` is the address of the Python object."""

    name: str
    addr: int = 0
    repr: str | None = None


class RawFrame(msgspec.Struct):
    name: str
    filename: str
    line: int = 0
    locals: list[RawLocal] | None = None


class RawThread(msgspec.Struct):
    frames: list[RawFrame]
    thread_name: str | None = None
    os_thread_id: int | None = None
    active: bool | None = None
    owns_gil: bool | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one dump: threads, or why not."""

    kind: str
    """``ok``, ``gone``, ``refused``, ``no-py-spy``, ``not-python``, ``failed`` or ``timeout``."""
    threads: tuple[RawThread, ...] = ()
    nonblocking: bool = False
    native: bool = False
    timed_out: bool = False
    """A blocking dump ran into its deadline, whatever the second try gave."""
    continued: bool = False
    """The deadline left the target with a stop, and we took it back with SIGCONT."""
    reason: str = ""
    source: str | None = None
    """Who gave the threads, where it was not py-spy."""


_threads_decoder = msgspec.json.Decoder(list[RawThread])


def find_pyspy(option: str | None = None) -> str | None:
    """Path of the program: the one asked for, else beside our interpreter, on ``PATH``, or where its package was installed."""
    if option:
        return shutil.which(option)
    beside = Path(sys.executable).with_name("py-spy")
    if os.access(beside, os.X_OK):
        return str(beside)
    return shutil.which("py-spy") or _packaged()


def _packaged() -> str | None:
    try:
        files = importlib.metadata.files("py-spy") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    paths = (str(f.locate()) for f in files if f.name == "py-spy")
    return next((p for p in paths if os.access(p, os.X_OK)), None)


def dump(binary: str, pid: int, *, nonblocking: bool = False, native: bool = False, timeout_s: float = 4.0, proc: Path = Path("/proc")) -> Outcome:
    """The stacks of one process, by the way its state allows."""
    status = read_status(pid, proc)
    if status is None or status.get("State", "X")[0] in "ZX":
        return Outcome(kind="gone", reason="no such process")
    was_stopped = status["State"][0] in "Tt"
    if nonblocking or was_stopped or status.get("TracerPid", "0") != "0" or _has_sleeper(pid, proc):
        return _once(binary, pid, True, False, timeout_s, proc)
    first = _once(binary, pid, False, native, timeout_s, proc)
    if first.kind != "timeout":
        return first if first.kind != "failed" else _second_try(binary, pid, timeout_s, proc, first)
    continued = release(pid, proc)
    second = _once(binary, pid, True, False, timeout_s, proc)
    return msgspec.structs.replace(second, timed_out=True, continued=continued)


def _second_try(binary: str, pid: int, timeout_s: float, proc: Path, first: Outcome) -> Outcome:
    second = _once(binary, pid, True, False, timeout_s, proc)
    return second if second.kind == "ok" else first


def _once(binary: str, pid: int, nonblocking: bool, native: bool, timeout_s: float, proc: Path) -> Outcome:
    argv = [binary, "dump", "--json", "--locals", "--pid", str(pid)]
    argv += ["--nonblocking"] if nonblocking else ["--native"] if native else []
    try:
        done = run_bounded(argv, timeout_s, env={**os.environ, "RUST_BACKTRACE": "0"})
    except OSError as e:
        return Outcome(kind="failed", reason=f"py-spy could not be started: {e.strerror}")
    if done.timed_out:
        return Outcome(kind="timeout", reason=f"py-spy gave no answer in {timeout_s:g} s", nonblocking=nonblocking)
    if done.code is None:
        return Outcome(kind="failed", reason=f"more than {MAX_OUTPUT_BYTES >> 20} MiB of stacks")
    if done.code != 0:
        return _why(pid, done, proc)
    try:
        threads = _threads_decoder.decode(done.out)
    except (msgspec.DecodeError, msgspec.ValidationError) as e:
        return Outcome(kind="failed", reason=f"py-spy's answer could not be read: {e}")
    return Outcome(kind="ok", threads=tuple(threads), nonblocking=nonblocking, native=native and not nonblocking)


def _why(pid: int, done: Finished, proc: Path) -> Outcome:
    """py-spy ends with 1 for every trouble, and its headline for a dead process and a forbidden one is the same: ask the kernel."""
    if not (proc / str(pid)).exists() or (read_status(pid, proc) or {}).get("State", "X")[0] in "ZX":
        return Outcome(kind="gone", reason="no such process")
    try:
        (proc / str(pid) / "mem").open("rb").close()
    except PermissionError:
        return Outcome(kind="refused", reason="the kernel refused ptrace access")
    except OSError:
        return Outcome(kind="gone", reason="no such process")
    if not is_python(pid, proc):
        return Outcome(kind="not-python")
    text = done.err.decode(errors="replace")
    # Older container runtimes filter ptrace and process_vm_readv by seccomp, which leaves /proc/PID/mem open: only the text tells.
    if "os error 1)" in text or "EPERM" in text or "Permission Denied" in text:
        return Outcome(kind="refused", reason="a system call filter or the kernel refused ptrace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return Outcome(kind="failed", reason=lines[0][:200] if lines else f"py-spy ended with {done.code}")


def is_python(pid: int, proc: Path = Path("/proc")) -> bool:
    """Does the process run a Python interpreter, by its program's name or a mapped libpython?"""
    try:
        if "python" in os.path.basename(os.readlink(proc / str(pid) / "exe")):
            return True
        with (proc / str(pid) / "maps").open("rb") as f:
            return any(b"/libpython" in line for line in f)
    except OSError:
        return False


def read_status(pid: int, proc: Path = Path("/proc"), tid: int | None = None) -> dict[str, str] | None:
    """``/proc/PID/status`` (or of one thread) as a mapping; None when there is no such process."""
    folder = proc / str(pid) if tid is None else proc / str(pid) / "task" / str(tid)
    try:
        text = (folder / "status").read_text(errors="replace")
    except OSError:
        return None
    pairs = (line.split(":", 1) for line in text.splitlines() if ":" in line)
    return {key: value.strip() for key, value in pairs}


def _has_sleeper(pid: int, proc: Path, pause_s: float = 0.01) -> bool:
    """Does a thread stay in uninterruptible sleep? Page faults and disk reads pass through it in far less than ``pause_s``."""
    before = set(_sleepers(pid, proc))
    if not before:
        return False
    time.sleep(pause_s)
    return bool(before.intersection(_sleepers(pid, proc)))


def _sleepers(pid: int, proc: Path) -> Iterator[int]:
    folder = f"{proc}/{pid}/task"
    for tid in _tids(pid, proc):
        with contextlib.suppress(OSError), open(f"{folder}/{tid}/stat", "rb", buffering=0) as f:
            head = f.read(256)
            if head[head.rfind(b")") + 2 : head.rfind(b")") + 3] == b"D":
                yield tid


def _tids(pid: int, proc: Path) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"{proc}/{pid}/task")]
    except OSError:
        return []


def thread_ids_by_inner_id(pid: int, proc: Path = Path("/proc")) -> dict[int, int]:
    """In a process of a PID namespace below ours: its own thread ids to ours; empty for a process of our namespace.

    From Python 3.11 on py-spy tells the thread id that the interpreter itself sees.
    """
    if len((read_status(pid, proc) or {}).get("NSpid", "").split()) < 2:
        return {}
    statuses = ((tid, read_status(pid, proc, tid) or {}) for tid in _tids(pid, proc))
    return {int(status["NSpid"].split()[-1]): tid for tid, status in statuses if "NSpid" in status}


def release(pid: int, proc: Path = Path("/proc"), patience_s: float = 1.0) -> bool:
    """Take back a stop that a killed py-spy left behind; True when there was one and SIGCONT was sent.

    The kernel detaches a tracer that dies, but a SIGSTOP of its attach would stay: the thread stops at once, or, when it sleeps in state D,
    as soon as it wakes. py-spy 0.4.3 was seen to leave none. SIGCONT also drops pending stops. Call this only for a process that was
    not stopped before.
    """
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline and (read_status(pid, proc) or {}).get("TracerPid", "0") != "0":
        time.sleep(0.005)
    if not any(_has_stop(read_status(pid, proc, tid) or {}) for tid in _tids(pid, proc)):
        return False
    try:
        os.kill(pid, signal.SIGCONT)
    except OSError:
        return False
    return True


def _has_stop(status: dict[str, str]) -> bool:
    if status.get("TracerPid", "0") != "0":
        return False
    pending = int(status.get("SigPnd", "0"), 16) | int(status.get("ShdPnd", "0"), 16)
    return status.get("State", "?")[0] in "Tt" or bool(pending & _SIGSTOP_BIT)
