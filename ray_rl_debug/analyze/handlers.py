"""Servers that listen in one thread and answer in others: which of them may have a request, and what they do with it."""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.analyze.clocks import may_end
from ray_rl_debug.analyze.connections import is_served
from ray_rl_debug.analyze.frameworks import POLLERS, spot_of
from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, THREAD_WAITS, Kind
from ray_rl_debug.analyze.main_activity import SeenThread, helpers, is_in_pool
from ray_rl_debug.analyze.pauses import looks_again
from ray_rl_debug.analyze.progress import BUSY_FRACTION, Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.snapshot import Frame, Thread

_SILENT = (THREAD_WAITS - {Kind.LOCK}) | {Kind.SLEEP}
"""Where one that was never meant to answer may stand as well."""


def waits_for_client(one: Seen) -> bool:
    """Does it listen, with no other thread of its program? Then what it does next depends on who calls."""
    told = one.followed or one.telling
    if told is None or told.kernel is None or one.is_stopped:
        return False
    ports = {s.fd for s in one.process.sockets or () if s.state == "LISTEN" and s.fd is not None}
    waited = told.kernel.waits_on_fds or ()
    others = any(t.place.path and not t.listens and t.place.kind not in IDLE_KINDS for t in one.threads if t is not told)
    return not others and (told.listens or (bool(waited) and ports.issuperset(waited)))


def helpers_of(one: Seen) -> list[SeenThread]:
    """Threads of a process any of which may end the wait of the one by which it is seen, where it is not known which of them does.

    The executor of a framework, which looks again and again for results, is fed by threads of that framework alone.
    A thread that runs an event loop and waits in a call that does not await ends nothing: its coroutines, for whose results others wait, cannot
    go on. A blocked loop is told by a rule of its own.
    """
    if fellows := pool_fellows(one):
        return fellows
    waiter = _inner_waiter(one)
    if waiter is None or len(one.threads) < 3:
        return []
    fed_by = waiter.stack.once(_package_of_poller)
    own = (t for t in helpers(waiter, one.threads) if t is not one.telling and (fed_by is None or any(f.file.startswith(fed_by) for f in t.frames)))
    found = [t for t in own if not t.listens]
    return [] if any(t.place.on_loop and t.place.kind is not Kind.CODE for t in found) else found


def pool_fellows(one: Seen) -> list[SeenThread]:
    """Other threads at work for an idle loop whose coroutines wait for its pool, where the process is seen by one of them: which of them counts
    is not known, and some may only listen to what seldom speaks.
    """
    told = one.telling
    if told is None or one.followed is not None or one.is_stopped or not told.stack.once(is_in_pool):
        return []
    if not any(t.place.kind is Kind.LOOP_IDLE for t in one.threads):
        return []
    return [t for t in one.threads if t is not told and t.place.path and t.place.kind not in IDLE_KINDS and t.stack.once(is_in_pool)]


def fellow_that_goes_on(one: Seen) -> SeenThread | None:
    """One of these that uses the processor, or sleeps and will soon be woken by its clock."""
    known = [(t, t.kernel) for t in pool_fellows(one) if t.kernel is not None]
    if not known:
        return None
    least_s = BUSY_FRACTION * (one.process.window_s or 0.0)
    works = (t for t, kernel in known if (least_s and (kernel.cpu_s or 0.0) > least_s) or (t.place.kind is Kind.SLEEP and may_end(kernel)))
    return next(works, None)


def _package_of_poller(frames: Sequence[Frame]) -> str | None:
    """``areal/``: the framework in whose poller a thread is."""
    poller = next((f for f in frames if spot_of(POLLERS, f.function, f.file) is not None), None)
    return f"{poller.file.partition('/')[0]}/" if poller is not None and "/" in poller.file.lstrip("/") else None


def _inner_waiter(one: Seen) -> SeenThread | None:
    """The thread whose wait another thread of its process ends: the telling one, or the one that it joins or whose stream it sends."""
    if one.telling is None or not _waits_inside(one):
        return None
    if one.followed is None:
        return one.telling
    joins = one.telling.place.kind in (Kind.JOIN, Kind.SOCKET) and one.followed.place.kind in THREAD_WAITS
    return one.followed if joins else None


def _waits_inside(one: Seen) -> bool:
    follows = one.followed is not None or (one.telling is not None and one.telling.place.kind in THREAD_WAITS)
    return follows and not one.is_stopped


def lacks_setter(one: Seen) -> bool:
    """Does it wait for an event, with no other thread of Python and no coroutine that could set it?"""
    if one.kind is not Kind.EVENT or one.process.async_tasks is None or one.ends:
        return False
    return not any(t is not one.telling and (t.place.path or t.score > 0) for t in one.threads)


def pausing_helper(one: Seen) -> SeenThread | None:
    """One of these that has slept through the window, and whose clock wakes it within the time that answers take."""
    if (timer := timer_of(one) if _waits_inside(one) else None) is not None:
        return timer
    return next((t for t in helpers_of(one) if t.place.kind is Kind.SLEEP and t.kernel is not None and _wakes_once(one, t.kernel)), None)


def unread_helper(one: Seen) -> SeenThread | None:
    """One of these whose side in the kernel was not read, where that of others was."""
    return next((t for t in helpers_of(one) if t.kernel is None), None) if one.process.threads else None


def timer_of(one: Seen) -> SeenThread | None:
    """A timer of its own whose time comes soon, as far as is known: what it does then is all that it is there for."""
    timers = (t for t in one.threads if t is not one.telling and t.stack.once(_is_timer))
    return next((t for t in timers if t.kernel is None or _wakes_once(one, t.kernel) or (not t.place.path and _lacks_clock(one, t.kernel))), None)


def _wakes_once(one: Seen, kernel: Thread) -> bool:
    """Has it slept through the window, woken by the looks alone, and does its clock wake it within the time that answers take?"""
    return may_end(kernel) and _slept(one, kernel)


def _lacks_clock(one: Seen, kernel: Thread) -> bool:
    """Of one that is known to wait for its time: was not read when that comes?"""
    return kernel.wakes_in_s is None and _slept(one, kernel)


def _slept(one: Seen, kernel: Thread) -> bool:
    return (kernel.run_slices or 0) <= 2 * one.looks


def _is_timer(frames: Sequence[Frame]) -> bool:
    """Is it a timer of Python, which calls a function of the program once its time is over?"""
    return any(f.function == "Timer.run" and f.file == "threading.py" for f in frames)


def library_goes_on(one: Seen) -> bool:
    """Does it wait in C, and does a thread without Python sleep for a time, or stand at a disk? Such a one may end the wait."""
    thread = one.telling
    if thread is None or thread.place.kind is not Kind.LOCK or thread.place.own != 0 or one.followed is not None or one.is_stopped:
        return False
    most, known = 2 * one.looks, {t.tid for t in one.threads}
    others = [t for t in one.process.threads if t.tid not in known and t.tid != one.process.pid]
    return any(t.state == "D" or (kernel_call(t) == "sleep" and (t.run_slices or 0) <= most) for t in others)


def working_helper(one: Seen) -> SeenThread | None:
    """One of these that uses the processor."""
    least_s = BUSY_FRACTION * (one.process.window_s or 0.0)
    return next((t for t in helpers_of(one) if t.kernel is not None and least_s and (t.kernel.cpu_s or 0.0) > least_s), None)


def handlers(server: Seen) -> list[SeenThread]:
    """Of a server whose telling thread only listens: threads of its program that may have the request, the most telling first."""
    told = server.followed or server.telling
    if told is None or not told.listens:
        return []
    return own_threads(server)


def own_threads(server: Seen) -> list[SeenThread]:
    """Threads of its program that neither rest nor listen."""
    return [t for t in server.threads if t.place.path and not t.listens and t.place.kind not in IDLE_KINDS]


def does_not_accept(server: Seen) -> bool:
    """Do clients wait in its queue, while its one thread came back to a pause several times, in a loop that nothing ends?"""
    queued = any(s.state == "LISTEN" and s.rx_queue_bytes for s in server.process.sockets or ())
    own = own_threads(server) if queued else []
    if len(own) != 1 or server.motion is not Motion.FROZEN or own[0].kernel is None or own[0].place.own != 0:
        return False
    came_back = (own[0].kernel.run_slices or 0) > 2 * server.looks + 1
    return own[0].place.kind is Kind.SLEEP and own[0].frames[0].goes_round is True and came_back


def has_all_in_hand(server: Seen) -> bool:
    """Does it have a handler for each client that was read, and does none of these read? Then one has the request of whoever waits for an answer."""
    own = handlers(server)
    clients = [s for s in server.process.sockets or () if s.state == "ESTABLISHED" and is_served(server, s)]
    return len(own) >= len(clients) > 0 and all(t.place.kind in THREAD_WAITS for t in own)


def has_own_reason(server: Seen) -> bool:
    """Does a server stand in what explains its silence? So does one that listens while none of its threads has the request.

    One that waits for an event or pauses may never have meant to answer, unless it stands in what answers requests, or looks again and again
    for something and does nothing else.
    """
    told = server.followed or server.telling
    if server.is_idle or told is None:
        return False
    if does_not_accept(server) or (looks_again(server) and len(own_threads(server)) == 1):
        return True
    thread = next(iter(handlers(server)), told)
    return bool(thread.place.path) and (thread.answers or thread.place.kind not in _SILENT or has_all_in_hand(server))


def pausing_giver(feeder: Seen) -> SeenThread | None:
    """Of a process that waits for its workers: another thread of its program that pauses, and may have their next piece when it wakes."""
    told = feeder.followed or feeder.telling
    others = [t for t in feeder.threads if t is not told and t.place.path and not t.is_apart and t.place.kind is Kind.SLEEP]
    return next((t for t in others if _may_wake(feeder, t)), None)


def _may_wake(one: Seen, thread: SeenThread) -> bool:
    """Does its clock end the pause of a thread in time, or was the kernel's side of this one thread not read? Of stacks alone nobody read any."""
    return may_end(thread.kernel) if thread.kernel is not None else bool(one.process.threads) or one.process.window_s is not None


def pausing_handler(server: Seen) -> SeenThread | None:
    """A handler that sleeps, and whose clock wakes it within the time that answers take."""
    return next((t for t in handlers(server) if t.place.kind is Kind.SLEEP and _may_wake(server, t)), None)


def waiting_thread(one: Seen) -> SeenThread | None:
    """The thread whose wait counts: the followed one when the telling thread only waits for it."""
    return one.followed or one.telling
