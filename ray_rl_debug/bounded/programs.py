"""Run a program with a deadline and a bound on its output, in memory, so that nothing of it is left when we die."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import msgspec

from ray_rl_debug.bounded import supervisor

MAX_OUTPUT_BYTES = 8 << 20
START_S = 5.0
"""A supervisor that says nothing for this long beyond the deadline is stopped, or cannot be started on this machine."""
_PROGRAM = supervisor.__file__


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """How a bounded child process ended."""

    code: int | None
    """Exit status, negative for a signal; None when it was killed for the deadline or for its size, or its supervisor died."""
    out: bytes
    err: bytes
    timed_out: bool = False
    continued: bool = False
    """The end left the traced process with a stop, and SIGCONT took it back."""
    held: bool = False
    """The traced process still has a tracer that could not be ended."""
    died: bool = False
    """The supervisor was killed, and the program with it."""


class Traced(msgspec.Struct, frozen=True, kw_only=True):
    """The process that a program stops while it looks."""

    pid: int
    ticks: int | None
    """Its start: another process may get its number."""


class Supervisors:
    """Runs programs below supervisors, see `supervisor`; those that are idle are used again until `close`. Safe to use from several threads."""

    def __init__(self) -> None:
        self._idle: list[_Supervised] = []
        self._lock = threading.Lock()

    def run(
        self,
        argv: Sequence[str],
        timeout_s: float,
        *,
        max_bytes: int = MAX_OUTPUT_BYTES,
        env: Mapping[str, str] | None = None,
        traced: Traced | None = None,
    ) -> Finished:
        """Run a program; kill it after ``timeout_s`` seconds, beyond ``max_bytes`` of output, or when we die.

        It belongs to another session, so that Ctrl-C at our terminal does not end it while it holds another process.

        Raises:
            OSError: it could not be started.
        """
        with self._lock:
            one = self._idle.pop() if self._idle else None
        if one is None or not one.is_ready():
            one = _Supervised()
        finished = None
        try:
            finished = one.run(argv, timeout_s, max_bytes, env, traced)
        finally:
            if finished is not None and one.is_alive:
                with self._lock:
                    self._idle.append(one)
            else:
                one.end()
        return finished

    def close(self) -> None:
        """End the supervisors that are idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for one in idle:
            one.end()

    def __enter__(self) -> Supervisors:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def run_bounded(argv: Sequence[str], timeout_s: float, **how: Any) -> Finished:
    """As `Supervisors.run`, with a supervisor of its own."""
    with Supervisors() as supervisors:
        return supervisors.run(argv, timeout_s, **how)


class _Supervised:
    """One supervisor, and the pipes to it."""

    def __init__(self) -> None:
        # Without PYTHONPATH a module of the job cannot stand for one of the standard library; PYTHONHOME is needed where it is set.
        flags = ("-s", "-S") if "PYTHONHOME" in os.environ else ("-I", "-S")
        self._child = subprocess.Popen(
            [_python(), *flags, _PROGRAM, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        self.is_alive = True

    def is_ready(self) -> bool:
        """Did it survive since the last order?"""
        if self._child.poll() is not None:
            self.end()
        return self.is_alive

    def run(self, argv: Sequence[str], timeout_s: float, max_bytes: int, env: Mapping[str, str] | None, traced: Traced | None) -> Finished:
        order: dict[str, object] = {"argv": list(argv), "timeout_s": timeout_s, "max_bytes": max_bytes}
        order |= {"env": dict(env)} if env is not None else {}
        order |= {"target": traced.pid, "ticks": traced.ticks} if traced is not None else {}
        deadline = time.monotonic() + timeout_s + supervisor.KILL_PATIENCE_S * 2 + START_S
        try:
            head, data = self._ask(json.dumps(order).encode() + b"\n", deadline)
        except (OSError, EOFError, ValueError):
            return self._died(traced, time.monotonic() >= deadline)
        if head.get("errno"):
            raise OSError(head["errno"], os.strerror(head["errno"]))
        out, err = data[: head["out"]], data[head["out"] :]
        return Finished(code=head["code"], out=out, err=err, timed_out=head["timed_out"], continued=head["continued"], held=head["held"])

    def _ask(self, order: bytes, deadline: float) -> tuple[dict[str, Any], bytes]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(order)
        data, head = bytearray(), dict[str, Any]()
        size: int | None = None
        while size is None or len(data) < size:
            if not supervisor.wait_readable(self._child.stdout.fileno(), deadline - time.monotonic()):
                raise TimeoutError
            piece = os.read(self._child.stdout.fileno(), 1 << 20)
            if not piece:
                raise EOFError
            data += piece
            if size is None and (cut := data.find(b"\n") + 1):
                head = json.loads(data[:cut])
                size = int(head["out"]) + int(head["err"]) if "out" in head else 0
                del data[:cut]
        return head, bytes(data)

    def _died(self, traced: Traced | None, timed_out: bool) -> Finished:
        """The supervisor is gone, or silent: end what is left of it, and let the target go in its place."""
        self.end()
        continued = traced is not None and supervisor.release(traced.pid, traced.ticks)
        held = traced is not None and supervisor.is_traced(traced.pid)
        return Finished(code=None, out=b"", err=b"", timed_out=timed_out, continued=continued, held=held, died=True)

    def end(self) -> None:
        """Kill the supervisor with what it started; returns when that is gone, or stuck in the kernel."""
        if not self.is_alive:
            return
        self.is_alive = False
        group = self._child.pid
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()
        if self._child.returncode is None:  # until it is waited for nobody else can get its number
            try:
                os.killpg(group, signal.SIGKILL)
            except OSError:
                pass
        try:
            self._child.wait(supervisor.KILL_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return
        deadline = time.monotonic() + supervisor.KILL_PATIENCE_S
        while _has_members(group) and time.monotonic() < deadline:
            time.sleep(0.001)


def _python() -> str:
    """Our own, or, where we have given up the rights to run that, any: a supervisor needs the standard library alone."""
    return sys.executable if os.access(sys.executable or "", os.X_OK) else shutil.which("python3") or sys.executable


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True
