"""A driver of idle actors: one that its user keeps is at rest, one that stands in the kernel is not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import IDLE, Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import OpenFile

READ, WRITE, FLOCK = 0, 1, 73


def told(syscall: int, fd: int, wchan: str, path: str, kind: str, *, unread: bool = False) -> Report:
    """What is said of a driver that stands in a call at a descriptor, beside two idle actors; of one of these no stack may have been read."""
    stacks = Stacks()
    driver = process(stacks, 10, "python t.py", "log@/job/t.py:20 main@/job/t.py:40", kind="driver", syscall=syscall, arg0=fd, wchan=wchan)
    driver = replace(driver, files=(OpenFile(fd=fd, path=path, kind=kind, writable=fd != 0),))
    actors = [process(stacks, 20 + i, "ray::IDLE", IDLE) for i in range(2)]
    actors[0] = replace(actors[0], python="3.12.3", samples=()) if unread else actors[0]
    return diagnose(snapshot(stacks.node([driver, *actors])))


@pytest.mark.parametrize(
    ("call", "state"),
    [
        ((WRITE, 1, "rpc_wait_bit_killable", "/mnt/nfs/job.log", "regular"), State.HANG),
        ((WRITE, 1, "sk_stream_wait_memory", "socket:[4]", "socket"), State.HANG),
        ((WRITE, 1, "pipe_write", "pipe:[33]", "fifo"), State.UNKNOWN),
        ((WRITE, 1, "wait_woken", "/dev/pts/0", "char"), State.UNKNOWN),
        ((FLOCK, 5, "locks_lock_inode_wait", "/data/t.lock", "regular"), State.UNKNOWN),
        ((READ, 0, "wait_woken", "/dev/pts/0", "char"), State.HEALTHY),
        ((READ, 0, "pipe_read", "pipe:[3]", "fifo"), State.HEALTHY),
    ],
    ids=["dead mount", "full socket", "full pipe", "terminal that takes no more", "file lock", "a person types", "its starter writes"],
)
def test_a_driver_in_the_kernel(call: tuple[int, int, str, str, str], state: State) -> None:
    assert told(*call).verdict.state is state


def test_rest_is_only_possible_where_a_stack_was_not_read() -> None:
    whole, less = (told(READ, 0, "pipe_read", "pipe:[3]", "fifo", unread=unread).verdict for unread in (False, True))
    assert (whole.state, whole.certainty) == (State.HEALTHY, Certainty.LIKELY)
    assert less.certainty is Certainty.POSSIBLE
