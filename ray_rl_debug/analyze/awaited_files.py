"""The file that a process waits to go away, and whether anybody may still remove it."""

from __future__ import annotations

from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.snapshot import AwaitedFile


def awaited_file(one: Seen) -> AwaitedFile | None:
    """The file that a process waits to go away; None where it waits for none, or which it is was not read."""
    return next((f for f in one.node.awaited_files if one.process.pid in f.waiters), None)


def left_behind_s(one: Seen, file: AwaitedFile) -> float | None:
    """Seconds that a file was there before the capture began, if nobody is left who would remove it: nobody who may have made it holds it open.

    None: somebody does, or may, or the file may be of this very moment.
    """
    if file.unread != 0 or file.holders or _is_open(one, file) or file.made_time_s is None or file.made_time_s >= one.node.started_time_s:
        return None
    return one.node.started_time_s - file.made_time_s


def _is_open(one: Seen, file: AwaitedFile) -> bool:
    """Has somebody on its machine the file open, as the lists of open files tell?"""
    return any(f.path == file.path and f.fd is not None for process in one.node.processes for f in process.files or ())
