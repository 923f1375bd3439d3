"""Processes that hold as many descriptors as they may, and who cannot get in for that reason."""

from __future__ import annotations

from ray_rl_debug.analyze.connections import is_rays, is_served, port_of, socket_owners
from ray_rl_debug.analyze.looks import looks_at
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.snapshot import MAX_SOCKETS, Descriptors, Socket

_OPENS = frozenset(
    {"accept", "accept4", "connect", "create_connection", "socket", "open", "openat", "fdopen", "mkstemp", "pipe", "dup", "Popen", "popen"}
)
"""Functions of Python and of the C library that need a descriptor, as the source of a loop writes them."""


def without_any_left(one: Seen) -> Descriptors | None:
    """What a process holds that can open nothing more, as far as was seen: all is taken, and none of it was closed during the window."""
    held = one.process.descriptors
    return held if held is not None and held.free == 0 and not held.renewed else None


def kept_out(one: Seen) -> list[Socket]:
    """Its listeners in whose queues clients wait to be accepted."""
    return [s for s in one.process.sockets or () if s.state == "LISTEN" and s.rx_queue_bytes]


def tries_to_open(one: Seen) -> bool:
    """Does it pause in a loop that looks whether it may open something now, as its source tells?"""
    thread = one.followed or one.telling
    return thread is not None and not _OPENS.isdisjoint(looks_at(thread) or ())


def is_full_for_good(view: View, one: Seen) -> bool:
    """Are most of them connections of clients that have gone, or files, and is no client still connected where others wait to be accepted?

    Nobody but the program itself closes those, and it has left all of them open; no request is in its hands whose end would make room.
    """
    held, sockets = without_any_left(one), one.process.sockets or ()
    if held is None or held.renewed != 0 or 2 * ((held.half_closed or 0) + held.files) <= held.held:
        return False
    is_whole = len(sockets) < MAX_SOCKETS or any(s.state == "CLOSE_WAIT" for s in sockets)  # these are the first to be left out
    ports = {port_of(s) for s in kept_out(one)}
    served = (s for s in sockets if s.state == "ESTABLISHED" and is_served(one, s) and port_of(s) in ports)
    return is_whole and all(is_rays(view, one, s, socket_owners(view)) for s in served)  # Ray's own stay
