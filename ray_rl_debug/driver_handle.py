"""The command's side of its Ray driver: start it, ask it, hear it, and end it whatever it does."""

from __future__ import annotations

import queue
import subprocess
import sys
import tempfile
import threading
from types import TracebackType

import msgspec

from ray_rl_debug.driver_messages import STOP, Ended, Message, Request, pack, read_message

LEAVE_S = 1.5
"""For the driver to remove its agents and leave the cluster, before it is killed."""


class Driver:
    """A context manager around the child process; in a session of its own, so that Ctrl-C reaches only us."""

    def __init__(self) -> None:
        # the same import path as ours, without the current folder that -m and -c would put first
        program = f"import sys; sys.path[:] = {sys.path!r}; from ray_rl_debug.driver import main; main()"
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 closed at the exit of this context manager
        self._child = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True
        )
        self._said: queue.Queue[Message] = queue.Queue()
        self._ears = threading.Thread(target=self._hear, daemon=True)
        self._ears.start()

    @property
    def pid(self) -> int:
        return self._child.pid

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the child: kindly when all went well, at once otherwise."""
        try:
            self._child.wait(LEAVE_S if kind is None else 0.0)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait(5)
        self._ears.join(1)
        for pipe in (self._child.stdin, self._child.stdout, self._errors):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass  # what was still to be written has no reader any more

    def send(self, request: Request) -> None:
        """Ask; a child that is already dead is heard as `Ended`."""
        self._write(pack(request))

    def stop(self) -> None:
        """Ask to finish early."""
        self._write(STOP)

    def receive(self, timeout_s: float) -> Message | None:
        """The next message, or None when none came in time."""
        try:
            return self._said.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def _write(self, data: bytes) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(data)
            self._child.stdin.flush()
        except OSError:
            pass

    def _hear(self) -> None:
        assert self._child.stdout is not None
        while True:
            try:
                message = read_message(self._child.stdout.read)
            except (OSError, ValueError, msgspec.DecodeError):
                message = None
            if message is None:
                self._said.put(Ended(f"our Ray driver ended: {self._last_words()}"))
                return
            self._said.put(message)

    def _last_words(self) -> str:
        try:
            self._errors.seek(0, 2)
            self._errors.seek(max(0, self._errors.tell() - 4096))
            lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        except (OSError, ValueError):
            lines = []
        return lines[-1][:200] if lines else "without a word"
