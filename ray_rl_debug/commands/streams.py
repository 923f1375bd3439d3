"""Standard output and error that nobody may read, signals that ask us to end, and an end that always comes.

A pipe whose reader has stopped, a terminal after Ctrl-S and a file on a hung file system block a write for ever. So a thread writes, and we wait
for it as long as makes sense: a person may take minutes to page through a report, progress on stderr is not worth waiting for.
"""

from __future__ import annotations

import io
import os
import queue
import signal
import sys
import threading
import time
from types import FrameType

from ray_rl_debug.commands import early
from ray_rl_debug.model.errors import EXIT_INTERRUPTED, StalledOutputError

OUTPUT_S = 300.0
"""Standard output may stand still for this long."""
PROGRESS_S = 1.0
LEAVE_S = 5.0
"""For threads that are left behind in calls that do not come back; then the process ends without them."""
LAST_WORDS_S = 10.0
"""So long after a reader (head, less) has gone, what is printed leads nowhere: a report still gets its exit code. Who prints later is ended."""
PIECE_BYTES = 4096
"""A pipe that a poller calls writable takes this much at once."""


class _Patient(io.RawIOBase):
    """A descriptor that another thread writes to."""

    def __init__(self, fd: int, patience_s: float, *, drops: bool) -> None:
        super().__init__()
        self._fd, self._patience_s = fd, patience_s
        self.drops = drops
        """Is what cannot be written in time thrown away?"""
        self._owner = 0
        self._todo: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[OSError | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        """Threads of ours take turns."""
        self._is_due = False
        """Is the end of the piece before still to come, because we were interrupted or gave it up?"""
        self._is_stuck = False
        """Was it given up?"""
        self._left_at: float | None = None
        """When a write found that the reader had gone."""

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return os.isatty(self._fd)

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:  # type: ignore[override]
        whole = bytes(data)
        for start in range(0, len(whole), PIECE_BYTES):
            try:
                is_written = self._write(whole[start : start + PIECE_BYTES])
            except BrokenPipeError:
                self._left_at = self._left_at or time.monotonic()
                if time.monotonic() - self._left_at > LAST_WORDS_S:
                    raise
                break
            except OSError as e:
                if self.drops:
                    break
                raise StalledOutputError(f"standard output takes nothing more: {e.strerror}") from e
            if not is_written:
                if self.drops:
                    break
                raise StalledOutputError(f"nobody read standard output for {self._patience_s:g} s")
        return len(whole)

    def _write(self, piece: bytes) -> bool:
        if self._owner != os.getpid():  # a fork has no threads
            self._owner, self._is_due, self._is_stuck, self._lock = os.getpid(), False, False, threading.Lock()
            self._todo, self._done = queue.SimpleQueue(), queue.SimpleQueue()
            threading.Thread(target=self._work, args=(self._todo, self._done), daemon=True, name="output").start()
        if not self._lock.acquire(timeout=self._patience_s):
            return False
        try:
            if self._is_due:
                self._done.get(timeout=0.0 if self._is_stuck else self._patience_s)
            self._is_due, self._is_stuck = True, False
            self._todo.put(piece)
            trouble = self._done.get(timeout=self._patience_s)
            self._is_due = False
        except queue.Empty:
            self._is_stuck = True
            return False
        finally:
            self._lock.release()
        if trouble is not None:
            raise trouble
        return True

    def _work(self, todo: queue.SimpleQueue[bytes], done: queue.SimpleQueue[OSError | None]) -> None:
        while True:
            piece = todo.get()
            try:
                while piece:
                    piece = piece[os.write(self._fd, piece) :]
                done.put(None)
            except OSError as e:
                done.put(e)


def take_over() -> None:
    """Make standard output and error patient; the first thing of a command line of ours."""
    _fill_closed()
    for name, patience_s, drops in (("stdout", OUTPUT_S, False), ("stderr", PROGRESS_S, True)):
        plain = getattr(sys, name)
        if isinstance(plain, io.TextIOWrapper) and isinstance(plain.buffer, io.BufferedWriter | io.FileIO):
            raw = _Patient(plain.fileno(), patience_s, drops=drops)
            # with PYTHONUNBUFFERED there is no buffer
            buffer = raw if plain.write_through else io.BufferedWriter(raw)  # type: ignore[type-var]
            # an odd name, or a terminal without our letters, must not cost the report
            how = {"line_buffering": plain.line_buffering, "write_through": plain.write_through}
            setattr(sys, name, io.TextIOWrapper(buffer, encoding=plain.encoding, errors="backslashreplace", **how))  # type: ignore[arg-type]


def _fill_closed() -> None:
    """A standard stream that the shell has closed (``>&-``) leads nowhere: else the next file that we open gets its number, and our text."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the least number that is free
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            plain = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
            setattr(sys, name, io.TextIOWrapper(plain, encoding="utf-8", errors="backslashreplace"))


def drop_stalled_output() -> None:
    """For a command that runs for days: what nobody reads is thrown away after a second."""
    buffer = getattr(sys.stdout, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    if isinstance(raw, _Patient):
        raw.drops, raw._patience_s = True, PROGRESS_S


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_asked: list[int] = []
"""Signals that asked us to end."""
SAME_S = 1.0
"""Slurm and ``timeout`` send one signal to each of our processes, and each passes it on."""


def end_on_signals() -> None:
    """SIGTERM and SIGHUP end a command as Ctrl-C does; one that is ignored (nohup) stays so."""
    for number in _SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler, early.remember):
            signal.signal(number, _interrupt)
    if early.asked:
        raise KeyboardInterrupt


def was_asked_to_end() -> bool:
    """A signal came, whatever became of its KeyboardInterrupt: a library that is just imported may make another error of it."""
    return bool(_asked or early.asked)


def end_in_peace() -> None:
    """The command is over and says its last words: further signals are dropped for a second, and then end us at once."""
    until = time.monotonic() + SAME_S

    def end(number: int, frame: FrameType | None) -> None:
        if time.monotonic() > until:
            os._exit(EXIT_INTERRUPTED)

    for number in _SIGNALS:
        if signal.getsignal(number) in (_interrupt, early.remember):
            signal.signal(number, end)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _asked.append(number)
    raise KeyboardInterrupt


def leave(code: int) -> int:
    """Give the exit code back, and see to it that the process ends: a thread may be in a call that never comes back."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError, StalledOutputError):
            code = code or EXIT_INTERRUPTED
            os._exit(code)
    try:
        threading.Thread(target=_end, args=(code,), daemon=True, name="end").start()
    except RuntimeError:  # no further thread may be started here
        os._exit(code)
    return code


def _end(code: int) -> None:
    time.sleep(LEAVE_S)
    os._exit(code)
