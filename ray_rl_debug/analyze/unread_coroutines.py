"""Coroutines that were not read: whoever waits for what one of them may do waits for somebody unseen."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.await_chains import is_own
from ray_rl_debug.analyze.connections import endpoint_key, is_served, socket_owners
from ray_rl_debug.analyze.coroutines import SERVES_RANK, is_apart, is_on_its_way, rank, went_on
from ray_rl_debug.analyze.kinds_of_places import THREAD_WAITS, Kind
from ray_rl_debug.analyze.pauses import has_loop, naps, untold_timers
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.snapshot import AsyncTask, Frame, Socket


def is_blind(view: View, one: Seen) -> bool:
    """Does it wait for coroutines that were not read? Unread coroutines never raise certainty."""
    waits = one.is_idle or (one.kind in THREAD_WAITS and one.place is not None and not one.place.on_loop)
    if not waits or one.process.async_tasks is None:
        return waits and has_loop(one)
    return _read_once(one) or _lacks_coroutine(one) or _lacks_asker(view, one)


def is_blind_beside(one: Seen) -> bool:
    """Does a loop rest beside the thread that counts, and is not known what a coroutine of it does? That one may do what others wait for."""
    beside = any(t.place.kind is Kind.LOOP_IDLE and t.stack.once(_runs_to_end) for t in one.threads)
    if one.is_idle or not beside:
        return False
    tasks = one.process.async_tasks
    return tasks is None or _lacks_main_coroutine(one) or any(t.stable is None and is_on_its_way(t) and not is_apart(t) for t in tasks)


def may_have_requests(view: View, one: Seen) -> bool:
    """Does a server hold connections that it has accepted, and were its coroutines not read? What Ray's own workers run, Ray tells."""
    if one.process.kind in ("ray-worker", "driver") or not is_blind(view, one):
        return False
    sockets = one.process.sockets or ()
    ports = {s.local.rpartition(":")[2] for s in sockets if s.state == "LISTEN" and s.family != "unix"}
    return any(s.state == "ESTABLISHED" and s.family != "unix" and s.local.rpartition(":")[2] in ports for s in sockets)


def _lacks_coroutine(one: Seen) -> bool:
    """Does a coroutine wait for others, and were those not read? Were only such read as go round apart, and not the one that its loop runs?

    Or has the loop a timer of none that was read? Of several that are awaited some may be done; a timer is of one that is not.
    """
    tasks = one.process.async_tasks or ()
    if not tasks:
        return False
    known = {t.address for t in tasks}
    awaited = [t.awaited.tasks for t in tasks if t.awaited is not None and t.awaited.tasks]
    if _lacks_main_coroutine(one) or any(map(known.isdisjoint, awaited)):
        return True
    untold = untold_timers(one)
    return untold > 0 and (not all(map(known.issuperset, awaited)) or untold > _timers_of_others(tasks))


def _timers_of_others(tasks: Sequence[AsyncTask]) -> float:
    """How many timers may be a library's own, or of those that wait for others for some time: no fact tells of how long."""
    if any(not is_own(f) and (f.file or "").partition("/")[0] not in _NO_TIMERS for t in tasks for f in t.chain):
        return math.inf
    return sum(t.gives_up_s is None and any(f.function in _LIMITED and f.file == "asyncio/tasks.py" for f in t.chain) for t in tasks)


_NO_TIMERS = frozenset({"asyncio", "anyio"})
"""Libraries that have no timers but those of coroutines."""
_LIMITED = frozenset({"_wait", "wait_for"})


def _lacks_main_coroutine(one: Seen) -> bool:
    return all(map(is_apart, one.process.async_tasks or ())) and any(t.stack.once(_runs_to_end) for t in one.threads)


def _runs_to_end(frames: Sequence[Frame]) -> bool:
    """Does an event loop run until one coroutine is done?"""
    return any(f.function.endswith("run_until_complete") for f in frames)


def _read_once(one: Seen) -> bool:
    """Were all its coroutines read twice but one that stands? Whether that one was there before is not known then."""
    tasks = one.process.async_tasks or ()
    if not any(t.stable is not None for t in tasks):
        return False
    if one.is_idle:  # of a server only what is under way tells
        ends = [e for e in one.ends if rank(e) < SERVES_RANK]
        return any(t.stable is None for e in ends if e.may_be_still for t in e.tasks) and not any(e.is_still for e in ends)
    return any(t.stable is None and not is_on_its_way(t) for t in tasks)


def _lacks_asker(view: View, one: Seen) -> bool:
    """Does a server at the other end of its connections go on to an answer, and does no coroutine of it wait for any of that one?"""
    awaited = {t.awaited.fd for t in one.process.async_tasks or () if t.awaited is not None}
    to = defaultdict[str, list[Socket]](list)
    for server, socket in _watched(view, one):
        to[server].append(socket)
    goes_on = (to[s.key] for key in to if (s := view.seen[key]).is_idle and (went_on(s.process) or naps(s)))
    return any(awaited.isdisjoint(s.fd for s in sockets) and not is_served(one, sockets[0]) for sockets in goes_on)


def _watched(view: View, one: Seen) -> Iterator[tuple[str, Socket]]:
    """The connections at which its loop waits, each with the process at the other end."""
    fds = {fd for t in one.threads if t.place.kind is Kind.LOOP_IDLE and t.kernel is not None for fd in t.kernel.waits_on_fds or ()}
    owners, node = socket_owners(view), one.node.name
    for socket in one.process.sockets or () if fds and one.process.async_tasks else ():
        if socket.fd in fds and socket.state == "ESTABLISHED" and socket.family.startswith("tcp") and socket.remote is not None:
            ends = owners.get((endpoint_key(node, socket.remote), endpoint_key(node, socket.local)), ())
            yield from ((key, socket) for key, _ in ends if key in view.seen and key != one.key)
