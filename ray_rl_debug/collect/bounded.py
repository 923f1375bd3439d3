"""Run a program with a deadline and a bound on its output, in memory."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence

import msgspec

MAX_OUTPUT_BYTES = 8 << 20
KILL_PATIENCE_S = 1.0
"""A child stuck in the kernel cannot be killed; after this long it is left to itself."""


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """How a bounded child process ended."""

    code: int | None
    """Exit status; None when it was killed for the deadline or for its size."""
    out: bytes
    err: bytes
    timed_out: bool = False


def run_bounded(argv: Sequence[str], timeout_s: float, *, max_bytes: int = MAX_OUTPUT_BYTES, env: Mapping[str, str] | None = None) -> Finished:
    """Run a program; kill it after ``timeout_s`` seconds or beyond ``max_bytes`` of output.

    It gets a session of its own, so that Ctrl-C at our terminal does not end it while it holds another process.

    Raises:
        OSError: it could not be started.
    """
    deadline = time.monotonic() + timeout_s
    child = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, env=env, bufsize=0
    )
    out, err = bytearray(), bytearray()
    try:
        ended = _read_all(child, out, err, deadline, max_bytes)
        code = child.wait(max(0.1, deadline - time.monotonic())) if ended else None
    except subprocess.TimeoutExpired:
        code = None
    timed_out = code is None and time.monotonic() >= deadline
    if code is None:
        _kill(child)
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    return Finished(code=code, out=bytes(out), err=bytes(err), timed_out=timed_out)


def _read_all(child: subprocess.Popen[bytes], out: bytearray, err: bytearray, deadline: float, max_bytes: int) -> bool:
    """True when both pipes came to their end in time and in size."""
    with selectors.DefaultSelector() as ready:
        for pipe, store in ((child.stdout, out), (child.stderr, err)):
            assert pipe is not None
            ready.register(pipe, selectors.EVENT_READ, store)
        while ready.get_map():
            events = ready.select(max(0.0, deadline - time.monotonic()))
            if not events or len(out) + len(err) > max_bytes:
                return False
            for key, _ in events:
                data = os.read(key.fd, 1 << 16)
                if data:
                    key.data.extend(data)
                else:
                    ready.unregister(key.fileobj)
    return True


def _kill(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    try:
        child.wait(KILL_PATIENCE_S)
    except subprocess.TimeoutExpired:
        pass  # in uninterruptible sleep: it ends when the kernel lets it
