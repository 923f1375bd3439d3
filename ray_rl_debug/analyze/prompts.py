"""Where a program asks a person: a read from a terminal, or the functions of libraries that read there."""

from __future__ import annotations

import re

from ray_rl_debug.analyze.kernel_calls import descriptor, kernel_call
from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.snapshot import Thread

_TERMINAL = re.compile(r"/dev/(pts/\d+|tty\w*|console)$")
_READS = frozenset({"read", "recv"})
"""A read from a terminal sleeps where a read from a socket does; the kernel's name of the place is the same."""
_POLLS = frozenset({"select", "poll"})
"""Where ``input`` sleeps once somebody has imported readline."""
_STANDARD_INPUT = 0
_ASK = (("getpass.py", "unix_getpass"),)
"""End of the file's path and function: CPython 3.11. The built-in ``input`` has no frame of its own."""


def asked_at(one: Seen, thread: SeenThread) -> str | None:
    """Where a thread waits for a person to type: the terminal, or the function that asks; None when it does not."""
    if thread.kernel is not None:
        fd = _read_from(thread.kernel)
        return next((f.path for f in one.process.files or () if f.fd == fd and fd is not None and _TERMINAL.match(f.path)), None)
    for frame in thread.frames[:2]:
        for file, function in _ASK:
            if short_name(frame.function) == function and (frame.file == file or frame.file.endswith(f"/{file}")):
                return f"{function} ({file})"
    return None


def awaits_user(one: Seen) -> bool:
    """Does a process that nobody waits for rest until somebody types or sends it something?"""
    thread = one.followed or one.telling
    return thread is not None and (rests_at_input(thread) or asked_at(one, thread) is not None)


def rests_at_input(thread: SeenThread) -> bool:
    """Does a thread read its standard input? It rests until its starter, or a person, writes or ends."""
    kernel = thread.kernel
    return kernel is not None and kernel_call(kernel) == "read" and descriptor(kernel) == _STANDARD_INPUT


def _read_from(thread: Thread) -> int | None:
    """The one descriptor that a thread reads from, or waits to read from."""
    call, fds = kernel_call(thread), thread.waits_on_fds or ()
    if call in _READS:
        return descriptor(thread)
    return fds[0] if call in _POLLS and len(fds) == 1 else None
