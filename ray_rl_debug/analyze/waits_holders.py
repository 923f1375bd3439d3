"""Edges at what the kernel keeps for whoever has it open: counters (eventfd), message queues of POSIX, and locks that belong to an open file."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.lost_ends import MAY_HOLD, lacks_child
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import OpenFile

COUNTER, QUEUE = "eventfd", "message queue"
_OF_QUEUES = frozenset({"mq_timedsend", "mq_timedreceive"})
"""Of POSIX, where the first argument is a descriptor. Those of System V have a number that is none."""
_AT_COUNTERS = frozenset({"eventfd_read", "do_wait_intr_irq"})
"""Wait channels of who reads a counter, where the descriptor was not read."""


def holder_edges(view: View, one: Seen, thread: SeenThread) -> Iterator[Edge]:
    """From who waits at a counter or queue to all others that have it open: any of them may end the wait.

    Who inherited it may have died, while copies of it stay open: such a one counts as well.
    """
    held, what = _waited_at(one, thread)
    if what is None:
        return
    others = [o for o in view if o.node is one.node and o.process is not one.process]
    holders = [o for o in others if held is not None and any(_is_same(held, f) for f in o.process.files or ())]
    unread = any(o.process.files is None and not o.has_ended and o.process.kind in MAY_HOLD for o in others)
    family = {one.process.pid, one.process.ppid, *(o.process.pid for o in holders), *(o.process.ppid for o in holders)}
    ended = [o for o in others if o.has_ended and o.process.ppid in family]
    lacks = not ended and any(lacks_child(view, o) for o in (one, *holders))  # the ends of pipes that nobody holds were of those that ended
    beside = any(t is not thread and t.place.path for t in one.threads)  # a thread of its own may end it as well
    if held is None or unread or beside or lacks:
        unseen = to_unseen(one, f"the {what} at which pid {one.process.pid} waits", Why.MESSAGE)
        yield msgspec.structs.replace(unseen, op=what)
    for other in holders:
        evidence = f"waits at the {what}{f' {held.path}' if held else ''}; {other.identity.label} has it open too: it {other.does()}"
        yield Edge(source=one.key, target=other.key, why=Why.MESSAGE, op=what, evidence=evidence, certainty=Certainty.LIKELY)
    for other in ended:
        evidence = f"waits at a {what}; pid {other.process.pid} has ended and may have had it open too"
        yield Edge(source=one.key, target=other.key, why=Why.MESSAGE, op=what, evidence=evidence, certainty=Certainty.LIKELY)


def _waited_at(one: Seen, thread: SeenThread) -> tuple[OpenFile | None, str | None]:
    """What a thread waits at, and what that is called; the second is None where it waits at neither."""
    kernel = thread.kernel
    call, fd = kernel_call(kernel), kernel.syscall_arg0 if kernel is not None else None
    held = next((f for f in one.process.files or () if f.fd == fd and fd is not None), None)
    if kernel is None or call not in ("message", "read"):
        return None, None
    if call == "message":
        return (held, QUEUE) if kernel.call in _OF_QUEUES else (None, None)
    is_counter = held.kind == "eventfd" if held is not None else (kernel.wchan or "").partition(".")[0] in _AT_COUNTERS
    return (held, COUNTER) if is_counter else (None, None)


def _is_same(held: OpenFile, other: OpenFile) -> bool:
    """Eventfds have a number of their own; a queue is a file of the kernel's."""
    if held.kind == "eventfd":
        return other.kind == "eventfd" and other.path == held.path
    return held.inode is not None and (other.device, other.inode) == (held.device, held.inode)
