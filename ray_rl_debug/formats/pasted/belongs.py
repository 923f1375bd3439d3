"""Does the head of a thread belong to the process that is open, or begin another one?"""

from __future__ import annotations

from ray_rl_debug.formats.dump import DumpThread
from ray_rl_debug.formats.pasted.events import Head
from ray_rl_debug.formats.pasted.partial import Partial
from ray_rl_debug.formats.pasted.several_tools import OF_PYTHON


def is_rest_of_cut(dump: Partial, head: Head) -> bool:
    """Is a dump the rest of a stack that was cut, and the head above which it stands one of the same process?"""
    is_same_tool = dump.source == head.source or (dump.source == "text" and head.source == "py-spy")
    return len(dump.threads) == 1 and is_same_tool and head.name != "MainThread" and head.label is None


def is_of_another(dump: Partial, head: Head, label: Head | None, *, is_chained: bool) -> bool:
    """Is the thread of another process than the dump that is open?

    Args:
        label: The name that the writer gave to what follows.
        is_chained: The next traceback belongs to the last one.
    """
    if label is not None and label.pid is not None and dump.pid not in (None, label.pid):
        return True  # a tool could not read the one before, and has shown no thread of it
    if (head.pid is not None and dump.pid not in (None, head.pid)) or (head.label is not None and head.label != (dump.label or "")):
        return True
    if head.source == "gdb" and head.is_chosen and head.tid is None and label is None and dump.source in OF_PYTHON and dump.threads:
        return False  # who types a thread's number at gdb shows the C frames of the process that another tool has shown
    if not dump.threads or (dump.source == "text" and not any(t.frames for t in dump.threads)):
        return False
    current_again = head.owns_gil is True and head.source == "faulthandler" and any(t.owns_gil for t in dump.threads)
    another_traceback = head.source == "traceback" and head.order == "outer" and not is_chained
    # "loader thread:", below the stack of the main thread that nobody headed.
    is_by_hand = head.source == dump.source == "text" and head.name != "MainThread"
    return label is not None or dump.source != head.source or current_again or another_traceback or (dump.is_headless and not is_by_hand)


def begun(head: Head) -> DumpThread:
    """The thread of a head, whose frames are still to come."""
    return DumpThread(frames=(), tid=head.tid, name=head.name, active=head.active, owns_gil=head.owns_gil, waits_for_gil=head.waits_for_gil)


def is_same_thread(thread: DumpThread, head: Head) -> bool:
    """Is it the thread of a head with its number in gdb? ``thread 2`` alone, below the list of all threads, is the one in the list.

    What somebody typed to go there has the number alone, and gdb answers with the one of the kernel.
    """
    return thread.tid == head.tid or (head.tid is None and len(thread.frames) <= 1) or (thread.tid is None and not thread.frames)
