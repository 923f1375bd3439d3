"""The command's side of its Ray driver: start it, order, hear it, and end it whatever it does."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import subprocess
import threading
import time
from types import TracebackType
from typing import IO

from ray_rl_debug.bounded.own_python import own_program
from ray_rl_debug.cluster.driver_messages import Ask, AskActors, Connect, Ended, Gather, Halt, Leave, Message, Order, Release, pack, read_message

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
LEAVE_S = 8.0
"""For the driver to remove its agents and leave the cluster, before it is killed. It bounds itself to less."""


class Driver:
    """A context manager around the child process; in a session of its own, so that Ctrl-C reaches only us."""

    def __init__(self) -> None:
        program = own_program("from ray_rl_debug.cluster.driver import main; main()")
        self._errors = b""
        """The end of what it wrote to stderr: in memory, since a full disk must not keep us from looking."""
        self._said: queue.Queue[Message] = queue.Queue()
        self._is_connected = False
        self._is_gone = False
        self._open_orders = 0
        self._child: subprocess.Popen[bytes] | None = None
        try:
            self._child = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        except OSError as e:  # no more processes, or an interpreter that another user may not run
            self._said.put(Ended(f"our Ray driver could not be started: {e.strerror}", is_gone=True))
            return
        self._ears = threading.Thread(target=self._hear, args=(self._child.stdout,), daemon=True)
        self._ears.start()
        self._last_ears = threading.Thread(target=self._hear_errors, args=(self._child.stderr,), daemon=True)
        self._last_ears.start()

    @property
    def pid(self) -> int | None:
        """None when it could not be started."""
        return self._child.pid if self._child is not None else None

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the child: kindly when all went well, at once otherwise. Nobody waits for it: a reader wants the report."""
        if self._child is None:
            return
        if kind is None:
            self.leave()
        else:
            self._child.kill()
        threading.Thread(target=self._see_off, args=(self._child,), daemon=True).start()

    def _see_off(self, child: subprocess.Popen[bytes]) -> None:
        try:
            child.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(5)
        self._ears.join(1)
        self._last_ears.join(1)
        for pipe in (child.stdin, child.stdout, child.stderr):
            with contextlib.suppress(OSError):  # what was still to be written has no reader any more
                if pipe is not None:
                    pipe.close()

    @property
    def asks_actors(self) -> bool:
        """May it call actors of the job, once it is told which cluster?"""
        return self._child is not None

    @property
    def is_connected(self) -> bool:
        """Was it told which cluster?"""
        return self._is_connected

    @property
    def with_agent(self) -> frozenset[str]:
        """Ids of nodes where somebody of ours is already, who needs nothing of the node's raylet."""
        return frozenset()

    def connect(self, address: str, namespace: str, *, use_token: bool) -> None:
        """Which cluster; once, later calls do nothing. A child that is already dead is heard as `Ended`."""
        if not self._is_connected:
            self._is_connected = True
            self._write(Connect(address=address, namespace=namespace, use_token=use_token))

    def order(self, order: Gather | Ask | AskActors | Release) -> None:
        """Give an order; its end is heard as `Ended`."""
        self._open_orders += 1
        self._write(order)

    def halt(self) -> None:
        """Ask to finish the order in progress early."""
        self._write(Halt())

    def leave(self) -> None:
        """No more orders come: the child leaves the cluster when it is through."""
        self._write(Leave())

    def receive(self, timeout_s: float) -> Message | None:
        """The next message, or None when none came in time."""
        try:
            message = self._said.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if isinstance(message, Ended):
            self._open_orders -= 1
            self._is_gone = self._is_gone or message.is_gone
        return message

    def settle(self, patience_s: float = 0.5) -> bool:
        """Drop what is left of earlier orders. False when the child is dead, or busy with one of them beyond its time."""
        until = time.monotonic() + patience_s
        while self._open_orders > 0 and not self._is_gone and (left := until - time.monotonic()) > 0:
            self.receive(left)
        return self._open_orders <= 0 and not self._is_gone and self._child is not None and self._child.poll() is None

    def _write(self, order: Order) -> None:
        if self._child is None or self._child.stdin is None:
            return
        try:
            self._child.stdin.write(pack(order))
            self._child.stdin.flush()
        except (OSError, ValueError):
            pass

    def _hear(self, stdout: IO[bytes]) -> None:
        while True:
            try:
                message = read_message(stdout.read)
            except (OSError, ValueError):
                message = None
            if message is None:
                self._said.put(Ended(f"our Ray driver ended: {self._last_words()}", is_gone=True))
                return
            self._said.put(message)

    def _hear_errors(self, stderr: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(stderr.fileno(), 4096):
                self._errors = (self._errors + data)[-4096:]

    def _last_words(self) -> str:
        self._last_ears.join(0.5)
        lines = self._errors.decode("utf-8", "replace").strip().splitlines()
        return _COLOURS.sub("", lines[-1])[:200] if lines else "without a word"
