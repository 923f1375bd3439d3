"""A small program that stands between us and each program that we start: it owns the deadline, and it outlives us long enough to clean up.

py-spy stops its target. A py-spy that is killed in the middle may leave the target stopped, one that nobody kills may hold it for ever. So:
when we die, by whatever signal, the supervisor sees our pipe end (or another parent), kills what it started and lets the target go.
When the supervisor dies, the kernel kills what it started (``PR_SET_PDEATHSIG``), and we let the target go. The supervisor has one thread
only, since that signal follows the thread that started the child.

Runs as a script with ``-I -S``: standard library only, nothing of our package. Orders come as lines of JSON, one at a time; each answer is
a line of JSON and the two outputs.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from typing import Any

KILL_PATIENCE_S = 1.0
"""A child stuck in the kernel cannot be killed; after this long it is left to itself."""
LOOK_S = 0.05
"""Between two looks at who our parent is: another process may have inherited the pipe that tells of its death."""
PANIC = 101
"""Exit status of a Rust program that broke."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SIGSTOP_BIT = 1 << (signal.SIGSTOP - 1)
_LEAVE = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


def main(parent: int) -> None:
    """Take orders until our parent is gone."""
    supervisor = _Supervisor(parent)
    for number in _LEAVE:
        signal.signal(number, supervisor.leave)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    supervisor.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    rest = b""
    while not supervisor.is_left():
        if not wait_readable(0, 20 * LOOK_S):
            continue
        data = os.read(0, 1 << 16)
        if not data:
            return
        rest += data
        if rest.endswith(b"\n"):
            supervisor.obey(json.loads(rest))
            rest = b""


class _Supervisor:
    def __init__(self, parent: int) -> None:
        import ctypes

        self._parent = parent
        self._is_told = False
        self._libc, self._long = ctypes.CDLL(None), ctypes.c_ulong

    def prctl(self, option: int, value: int) -> None:
        self._libc.prctl(option, *map(self._long, (value, 0, 0, 0)))

    def leave(self, number: int, frame: object) -> None:
        self._is_told = True

    def is_left(self) -> bool:
        """Is our parent gone, or were we told to end?"""
        return self._is_told or os.getppid() != self._parent

    def obey(self, order: dict[str, Any]) -> None:
        """Run one program and answer."""
        target, ticks = order.get("target", 0), order.get("ticks")
        # What somebody else has stopped is not ours to continue.
        is_ours = target > 0 and start_ticks(target) == ticks and not is_stopped(target)
        deadline = time.monotonic() + order["timeout_s"]
        try:
            child, pipes = self._start(order)
        except OSError as e:
            return self._answer({"errno": e.errno or 1}, b"", b"")
        out, err, code = bytearray(), bytearray(), None
        if self._read(pipes, (out, err), deadline, order["max_bytes"]):
            code = wait_until(child, max(deadline, time.monotonic() + 0.1))
        for fd in pipes:
            os.close(fd)
        timed_out = code is None and time.monotonic() >= deadline
        if code is None:
            _kill(child)
        self._end_others()
        is_broken = is_ours and (code is None or code < 0 or code == PANIC)
        continued = is_broken and release(target, ticks)
        head = {"code": code, "timed_out": timed_out, "continued": continued, "held": is_broken and is_traced(target)}
        return self._answer(head, bytes(out), bytes(err))

    def _start(self, order: dict[str, Any]) -> tuple[int, tuple[int, int]]:
        (out, out_end), (err, err_end), (trouble, trouble_end) = os.pipe(), os.pipe(), os.pipe()
        own = os.getpid()
        child = os.fork()
        if child == 0:
            try:
                self.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != own:
                    os._exit(1)
                for number in (*_LEAVE, signal.SIGPIPE):
                    signal.signal(number, signal.SIG_DFL)
                for fd, at in ((os.open(os.devnull, os.O_RDONLY), 0), (out_end, 1), (err_end, 2)):
                    os.dup2(fd, at)
                os.execvpe(order["argv"][0], order["argv"], order.get("env") or os.environ)
            except OSError as e:
                os.write(trouble_end, str(e.errno).encode())
            finally:
                os._exit(127)
        for fd in (out_end, err_end, trouble_end):
            os.close(fd)
        errno = os.read(trouble, 16)  # ends at once when the program is executed
        os.close(trouble)
        if errno:
            os.close(out)
            os.close(err)
            wait_until(child, time.monotonic() + KILL_PATIENCE_S)
            raise OSError(int(errno), "")
        return child, (out, err)

    def _read(self, pipes: tuple[int, int], stores: tuple[bytearray, bytearray], deadline: float, max_bytes: int) -> bool:
        """True when both pipes came to their end in time and in size, and our parent lives."""
        poll, store_of = select.poll(), dict(zip(pipes, stores))  # noqa: B905 any Python from 3.9 on may run us
        for fd in (0, *pipes):
            poll.register(fd, select.POLLIN)
        while store_of:
            left = deadline - time.monotonic()
            if left <= 0 or self.is_left() or sum(map(len, stores)) > max_bytes:
                return False
            for fd, _ in poll.poll(1000 * min(left, LOOK_S)):
                if fd == 0:
                    return False  # nobody gives an order before the last one is answered: our parent is gone
                data = os.read(fd, 1 << 16)
                if data:
                    store_of[fd].extend(data)
                else:
                    poll.unregister(fd)
                    del store_of[fd]
        return True

    def _end_others(self) -> None:
        """Kill what our child started and left behind: it has become ours."""
        try:
            with open(f"/proc/self/task/{os.getpid()}/children") as f:
                others = [int(word) for word in f.read().split()]
        except (OSError, ValueError):
            return
        for pid in others:
            _kill(pid)

    def _answer(self, head: dict[str, Any], out: bytes, err: bytes) -> None:
        data = json.dumps({**head, "out": len(out), "err": len(err)}).encode() + b"\n" + out + err
        try:
            while data and not self.is_left():
                data = data[os.write(1, data[: 1 << 16]) :]
        except BrokenPipeError:
            self._is_told = True


def _kill(child: int) -> None:
    try:
        os.kill(child, signal.SIGKILL)
    except OSError:
        return  # it runs as another user
    wait_until(child, time.monotonic() + KILL_PATIENCE_S)


def wait_readable(fd: int, timeout_s: float) -> bool:
    """Has a pipe something to read, or come to its end, within ``timeout_s`` seconds?"""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0.0, 1000 * timeout_s)))


def wait_until(child: int, deadline: float) -> int | None:
    """Exit status of a child, negative for a signal; None when it did not end in time."""
    pause = 0.0005
    while True:
        try:
            pid, status = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            return None
        time.sleep(pause)
        pause = min(2 * pause, 0.01)


def release(pid: int, ticks: int | None, proc: str = "/proc", patience_s: float = KILL_PATIENCE_S) -> bool:
    """Take back a stop that a killed tracer left behind; True when there was one and SIGCONT was sent.

    The kernel detaches a tracer that dies, but the SIGSTOP of an attach that it had not waited for stays: the process stops at once, or, when a
    thread sleeps in state D, as soon as that wakes. SIGCONT ends a stop and drops pending ones. Call this only for a process that was not stopped
    before, once its tracer was killed. `ticks` is its start: another process may have its number by now.
    """
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline and is_traced(pid, proc):
        time.sleep(0.002)
    sent = False
    for pause_s in (0.0, 0.02, 0.1) if patience_s else (0.0,):
        time.sleep(pause_s)  # a thread may be on its way into the stop
        if is_stopped(pid, proc) and (ticks is None or start_ticks(pid, proc) == ticks):
            try:
                os.kill(pid, signal.SIGCONT)
            except OSError:
                return sent
            sent = True
    return sent


def is_stopped(pid: int, proc: str = "/proc") -> bool:
    """Does a thread stand in a stop that no tracer holds, or have one before it?"""
    return any(tracer in ("", "0") and (state in ("T", "t") or pending) for state, tracer, pending in _threads(pid, proc))


def is_traced(pid: int, proc: str = "/proc") -> bool:
    return any(tracer not in ("", "0") for _, tracer, _ in _threads(pid, proc))


def start_ticks(pid: int, proc: str = "/proc") -> int | None:
    """When a process began; with its number this names one process for ever."""
    try:
        with open(f"{proc}/{pid}/stat", "rb") as f:
            return int(f.read(4096).rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _threads(pid: int, proc: str) -> list[tuple[str, str, bool]]:
    """State, tracer, and whether a SIGSTOP is pending, of each thread."""
    try:
        tids = os.listdir(f"{proc}/{pid}/task")
    except OSError:
        return []
    found = []
    for tid in tids:
        try:
            with open(f"{proc}/{pid}/task/{tid}/status", errors="replace") as f:
                rows = dict(line.split(":", 1) for line in f if ":" in line)
            pending = int(rows.get("SigPnd", "0"), 16) | int(rows.get("ShdPnd", "0"), 16)
        except (OSError, ValueError):
            continue
        found.append((rows.get("State", "?").strip()[:1], rows.get("TracerPid", "").strip(), bool(pending & _SIGSTOP_BIT)))
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]))
