"""Signals that come while the modules of the command are still read: remembered, and heeded as soon as there is somebody to say so.

That takes a third of a second on a busy machine. Python's own answer to Ctrl-C would be a traceback, or an import that fails for a wrong reason.
"""

from __future__ import annotations

import signal

asked: list[int] = []
"""Signals that came."""


def remember_signals() -> None:
    """From now on a first Ctrl-C, SIGTERM or SIGHUP is remembered; one that is ignored (nohup) stays so."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, remember)


def remember(number: int, frame: object) -> None:
    """A second one ends the process at once: what is read may lie on a mount that hangs."""
    signal.signal(number, signal.SIG_DFL)
    asked.append(number)
