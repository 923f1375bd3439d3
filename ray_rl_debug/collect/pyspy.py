"""py-spy: find it, run it within a deadline, and never leave its target stopped, not even when we are killed (see `supervisor`).

A blocking dump stops the target for some milliseconds and shows one consistent moment. It fails on a stopped or traced target, waits without end
for a thread in uninterruptible sleep (state D), and ends some calls early (see `cut_short`), so those are read with ``--nonblocking``.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from ray_rl_debug.bounded.programs import MAX_OUTPUT_BYTES, Finished, Traced, run_bounded
from ray_rl_debug.bounded.supervisor import start_ticks
from ray_rl_debug.collect.cut_short import is_cut_short
from ray_rl_debug.collect.procfs import read_bytes
from ray_rl_debug.formats.pyspy_json import RawThread

Run = Callable[..., Finished]
"""As `run_bounded`."""


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
    """The end of py-spy left the target with a stop, and we took it back with SIGCONT."""
    held: Traced | None = None
    """A py-spy that could not be ended may leave the target with a stop once it ends."""
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


def dump(
    binary: str,
    pid: int,
    *,
    nonblocking: bool = False,
    native: bool = False,
    timeout_s: float = 4.0,
    proc: Path = Path("/proc"),
    run: Run = run_bounded,
) -> Outcome:
    """The stacks of one process, by the way its state allows."""
    ticks = start_ticks(pid, str(proc))
    status = read_status(pid, proc)
    if ticks is None or status is None or status.get("State", "X")[0] in "ZX":
        return Outcome(kind="gone", reason="no such process")
    was_stopped = status["State"][0] in "Tt"
    if nonblocking or was_stopped or status.get("TracerPid", "0") != "0" or _has_sleeper(pid, proc):
        return _once(binary, pid, None, False, timeout_s, proc, run)
    for is_last in (False, True):
        if not is_cut_short(pid, proc):
            break
        careful = _once(binary, pid, None, False, timeout_s, proc, run)
        if careful.kind != "failed" or is_last:  # it may have failed because the process moves
            return careful
    first = _once(binary, pid, Traced(pid=pid, ticks=ticks), native, timeout_s, proc, run)
    if first.kind not in ("failed", "timeout"):
        return first
    second = _once(binary, pid, None, False, timeout_s, proc, run)
    answer = second if second.kind == "ok" or first.kind == "timeout" else first
    return msgspec.structs.replace(answer, timed_out=first.kind == "timeout", continued=first.continued, held=first.held)


def _once(binary: str, pid: int, traced: Traced | None, native: bool, timeout_s: float, proc: Path, run: Run) -> Outcome:
    """One dump; `traced` is the process where it may be stopped for that."""
    nonblocking = traced is None
    # To shorten file names py-spy 0.4.3 looks for __init__.py files while it holds the target: on a hung mount it would hold it for ever,
    # in a sleep that not even SIGKILL ends.
    argv = [binary, "dump", "--json", "--locals", "--full-filenames", "--pid", str(pid)]
    argv += ["--nonblocking"] if nonblocking else ["--native"] if native else []
    try:
        done = run(argv, timeout_s, env={**os.environ, "RUST_BACKTRACE": "0"}, traced=traced)
    except OSError as e:
        return Outcome(kind="failed", reason=f"py-spy could not be started: {e.strerror}")
    outcome = _outcome(pid, done, nonblocking, native, timeout_s, proc)
    return msgspec.structs.replace(outcome, continued=done.continued, held=traced if done.held else None)


def _outcome(pid: int, done: Finished, nonblocking: bool, native: bool, timeout_s: float, proc: Path) -> Outcome:
    if done.timed_out:
        return Outcome(kind="timeout", reason=f"py-spy gave no answer in {timeout_s:g} s", nonblocking=nonblocking)
    if done.died:
        return Outcome(kind="failed", reason="py-spy was killed with its supervisor")
    if done.code is None:
        return Outcome(kind="failed", reason=f"more than {MAX_OUTPUT_BYTES >> 20} MiB of stacks")
    if done.code != 0:
        return _why(pid, done, proc)
    try:
        # a function, a thread or a file may have any name, and a local any text
        threads = _threads_decoder.decode(done.out.decode("utf-8", "replace"))
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as e:
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
    end = f"py-spy was killed by signal {-done.code}" if done.code is not None and done.code < 0 else f"py-spy ended with {done.code}"
    return Outcome(kind="failed", reason=lines[0][:200] if lines else end)


def is_python(pid: int, proc: Path = Path("/proc")) -> bool:
    """Does the process run a Python interpreter, by its program's name or a mapped libpython?"""
    try:
        if "python" in os.path.basename(os.readlink(proc / str(pid) / "exe")):
            return True
        return b"/libpython" in (read_bytes(proc / str(pid) / "maps", 8 << 20) or b"")
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
