"""Edges at terminals that a program has opened for others, as agents do for the commands that they run."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kernel_calls import TERMINAL, descriptor, kernel_call
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import OpenFile


def terminal_edges(view: View, one: Seen, thread: SeenThread) -> Iterator[Edge]:
    """A reader of a terminal that it has opened for others waits for them, and they for what it types; at any other terminal a person does that."""
    fd = descriptor(thread.kernel)
    held = next((f for f in one.process.files or () if f.fd == fd and TERMINAL.match(f.path)), None) if fd is not None else None
    if held is None:
        return
    is_master = held.path.endswith(_MASTER)
    if kernel_call(thread.kernel) == "write":
        yield from _full_edges(view, one, held)
        return
    ends = [o for o in view if o.node is one.node and o.key != one.key and _has_end(o, held, is_master=not is_master)]
    if not is_master:
        ends = [o for o in ends if _reads_master(o, held)]
    for end in ends if held.terminal is not None else ():
        does = "prints there" if is_master else "should type there, and reads as well"
        evidence = f"{'reads what is printed' if is_master else 'reads what is typed'} at /dev/pts/{held.terminal}; pid {end.process.pid} {does}"
        yield Edge(source=one.key, target=end.key, why=Why.PIPE, evidence=evidence, certainty=Certainty.LIKELY)
    if is_master and not ends:
        yield to_unseen(one, f"the other end of the terminal at descriptor {fd}")


def _full_edges(view: View, one: Seen, held: OpenFile) -> Iterator[Edge]:
    """From a writer to whoever holds the other end and should read there."""
    for other in view if held.terminal is not None else ():
        if other.node is one.node and other.key != one.key and _has_end(other, held, is_master=not held.path.endswith(_MASTER)):
            evidence = f"/dev/pts/{held.terminal} is full; pid {other.process.pid} holds its other end and does not read"
            yield Edge(source=one.key, target=other.key, why=Why.PIPE, evidence=evidence, certainty=Certainty.LIKELY)


_MASTER = "/ptmx"


def _has_end(one: Seen, held: OpenFile, *, is_master: bool) -> bool:
    return any(f.terminal is not None and f.terminal == held.terminal and f.path.endswith(_MASTER) is is_master for f in one.process.files or ())


def _reads_master(one: Seen, held: OpenFile) -> bool:
    """Is the thread that counts in a read from the master of this very terminal?"""
    thread = one.followed or one.telling
    fd = descriptor(thread.kernel) if thread is not None and kernel_call(thread.kernel) in ("read", "recv") else None
    return fd is not None and any(f.fd == fd and f.terminal == held.terminal and f.path.endswith(_MASTER) for f in one.process.files or ())
