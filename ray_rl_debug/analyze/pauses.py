"""Pauses that end by themselves, and waits whose facts are missing: what speaks for one that stands still."""

from __future__ import annotations

from ray_rl_debug.analyze.await_chains import is_read_in_part, pass_work_on, serves_by_name
from ray_rl_debug.analyze.clocks import lacks_clock, wakes_soon
from ray_rl_debug.analyze.coroutines import (
    LOCKS,
    OUTSIDE,
    SERVES_RANK,
    End,
    got_data,
    is_apart,
    is_on_its_way,
    is_queued,
    is_write,
    looks_at_variables,
    rank,
    serves,
    sleeps_on,
    ticks,
)
from ray_rl_debug.analyze.engines import Engine, is_in_step
from ray_rl_debug.analyze.kernel_calls import descriptor, kernel_call
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, THREAD_WAITS, Kind
from ray_rl_debug.analyze.limits import FEW_WAKES, LONG_NAP_S, PLAIN_SLEEP_S, RARE_CALL_S
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.places import Place
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.telling_locals import given_limit_s
from ray_rl_debug.analyze.thread_scores import LOOP_THREADS
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, Thread

ANSWER_S = 60.0
"""Language models and sandboxes answer in seconds to a minute."""


def is_asleep(view: View, one: Seen) -> bool:
    """Is it in a pause that ends by itself, as far as is known? An engine's step takes milliseconds and sleeps for nobody."""
    if any(is_in_step(one, e) for e in view.once(_engines_by_kind)):
        return False
    timed = any(t is not None and t.place.timed for t in (one.telling, one.followed))
    return timed or (one.kind in THREAD_WAITS and naps(one)) or may_sleep(one)


def _engines_by_kind(view: View) -> tuple[Engine, ...]:
    """One engine of each kind: a step is told by the names of its functions, and a large run has thousands of engines."""
    return tuple({id(e.names): e for e in view.engines}.values())


def may_sleep(one: Seen) -> bool:
    """Does it stand at a line of own code, and the kernel did not tell in which call? It may as well only pause there."""
    kernel = one.telling.kernel if one.telling is not None and one.kind is Kind.CODE else None
    return kernel is not None and kernel.state == "S" and kernel.syscall is None and kernel.wchan is None


def wakes_in_time(view: View, one: Seen) -> bool:
    """Is it in a pause of Python's, or of one of its coroutines, that its clock ends within the time that rare work takes?

    What it does then, nobody knows: however often or long it was met so, time alone speaks against it. A clock that was not read is no long one.
    """
    thread = one.followed or one.telling
    if one.is_idle and naps(one):
        return True
    if thread is None or any(sleeps_with_gil(t) for t in one.threads) or not is_asleep(view, one) or may_sleep(one):
        return False  # no line of Python sleeps with the interpreter's lock, and none wakes while another thread does
    wakes_in_s = thread.kernel.wakes_in_s if thread.kernel is not None and thread.place.kind is Kind.SLEEP else None
    return wakes_in_s is None or wakes_in_s < LONG_NAP_S


def sleeps_with_gil(thread: SeenThread) -> bool:
    """Does a thread sleep with the interpreter's lock, so that no other thread of Python runs?"""
    return bool(thread.sample.owns_gil) and (thread.place.kind is Kind.SLEEP or (thread.kernel is not None and kernel_call(thread.kernel) == "sleep"))


def sleeps(one: Seen) -> bool:
    """Is the thread that counts in a timed pause?"""
    thread = one.followed or one.telling
    if thread is None:
        return any(kernel_call(t) == "sleep" for t in one.process.threads[:1])
    return thread.place.timed or may_sleep(one)


def may_wake_soon(kernel: Thread) -> bool:
    """The same, and where its clock was not read."""
    return kernel.wakes_in_s is None or wakes_soon(kernel)


def wakes_often(one: Seen, kernel: Thread) -> bool:
    """Did a thread that sleeps in all samples wake up between them? Then it came back to the same pause again and again."""
    return (kernel.run_slices or 0) > 2 * one.looks + FEW_WAKES


def wakes_first(one: Seen) -> bool:
    """Is the thread that counts in one pause all through the window, which the kernel's clock will end within the time that answers take?"""
    thread = one.followed or one.telling
    kernel = thread.kernel if thread is not None and thread.place.kind is Kind.SLEEP else None
    return kernel is not None and wakes_soon(kernel) and not _woke(one, kernel)


def is_plain_sleep(one: Seen) -> bool:
    """Is it a program without Python, such as ``sleep``, whose clock will wake it within minutes?"""
    threads = one.process.threads
    if one.process.python is not None or one.threads or len(threads) != 1 or kernel_call(threads[0]) != "sleep":
        return False
    return lacks_clock(threads[0]) or (threads[0].wakes_in_s is not None and threads[0].wakes_in_s < PLAIN_SLEEP_S)


def limit_s(one: Seen) -> float | None:
    """After how many seconds at most a wait ends by itself, where it stood through the window; also of the thread it is for.

    One that woke up in the window and waits once more comes back to it again and again: it only looks.
    """
    soonest: float | None = None
    for thread in (one.telling, one.followed):
        if thread is None or thread.place.kind is Kind.LOOP_IDLE or (thread is not one.followed and thread.place.kind not in MAY_HAVE_LIMIT):
            continue
        limit = _limit_of(one, thread)
        if limit is not None:
            soonest = limit if soonest is None else min(soonest, limit)
    return soonest


def _limit_of(one: Seen, thread: SeenThread) -> float | None:
    """By the kernel's clock, or by what the wait was called with where that was not read."""
    kernel = thread.kernel
    if kernel is not None and (_woke(one, kernel) or (kernel.wakes_in_s is not None and not wakes_soon(kernel))):
        return None
    if kernel is not None and kernel.wakes_in_s is not None:
        return kernel.wakes_in_s
    told = given_limit_s(thread.frames, thread.sample.locals) if thread.place.kind in MAY_HAVE_LIMIT else None
    return told if told is not None and told < RARE_CALL_S else None


MAY_HAVE_LIMIT = THREAD_WAITS | {Kind.MP_QUEUE, Kind.CODE, Kind.FILE, Kind.SOCKET, Kind.CHILD, Kind.CHANNEL}
"""Waits for another thread, for a message of multiprocessing, for a signal, for an answer, for what the kernel tells."""


def _woke(one: Seen, kernel: Thread) -> bool:
    """Did it wake up more often than the looks explain?"""
    return (kernel.run_slices or 0) > 2 * one.looks


def looks_again(one: Seen) -> bool:
    """Does it come back to one pause again and again, and do nothing else that a sample meets? It may look for what others should do."""
    thread = one.followed or one.telling
    at_pause = thread is not None and thread.place.kind is Kind.SLEEP and one.motion is Motion.FROZEN and not one.is_stopped
    return at_pause and thread is not None and thread.kernel is not None and wakes_often(one, thread.kernel)


def rests(one: Seen) -> bool:
    """Does it come back again and again to a pause in a loop that nothing ends? Each window finds it there, however long: its rounds may be short."""
    thread = one.followed or one.telling
    return looks_again(one) and thread is not None and bool(thread.frames) and thread.frames[0].goes_round is True


_LOOK_SHARE = 0.005
"""Of one core: to look whether something is there takes no more; steps of work do."""


def only_looks(one: Seen) -> bool:
    """Do all threads of own code look again and again in a step of the program, and do nothing else?

    Who rests between two rounds of the outermost loop may well have nothing to do.
    """
    thread = one.followed or one.telling
    if thread is None or not looks_again(one) or not is_within(thread.place):
        return False
    own = [t for t in one.threads if t is thread or (t.place.path and t.place.kind not in IDLE_KINDS)]
    most_s = _LOOK_SHARE * (one.process.window_s or 0.0)
    return all(
        t.place.kind is Kind.SLEEP
        and t.kernel is not None
        and wakes_often(one, t.kernel)
        and (t.kernel.cpu_s is not None and t.kernel.cpu_s < most_s)
        for t in own
    )


def is_within(place: Place) -> bool:
    """Is it in a function that the loop of its program calls, and not where work comes from?"""
    return bool(place.path) and place.path[0] != outermost(place) and not serves_by_name(place.path[0][0])


def outermost(place: Place) -> tuple[str, str, int | None]:
    """The function that a program runs as a whole."""
    return place.path[-2] if place.path[-1][0] == "<module>" and len(place.path) > 1 else place.path[-1]


def turns_by_clock(one: Seen) -> float | None:
    """After how many seconds at most a loop of the program's own, around a call that waits at several descriptors, makes its next turn.

    Coroutines tell more than the loop of asyncio, which wakes for its own sake too.
    """
    thread = one.telling if one.kind is Kind.LOOP_IDLE else None
    if thread is None or thread.kernel is None or thread.place.own is None or not thread.place.own:
        return None
    is_own = all(f.file.endswith("selectors.py") for f in thread.frames[: thread.place.own])
    limit_s = thread.kernel.wakes_in_s if thread.kernel.wakes_in_s is not None else given_limit_s(thread.frames, thread.sample.locals)
    return limit_s if is_own and limit_s is not None and limit_s < RARE_CALL_S else None


def naps(one: Seen) -> bool:
    """Does a coroutine of it, other than those that serve, sleep for no longer than a long pause takes?"""
    return bool(napping(one))


def napping(one: Seen) -> list[AsyncTask]:
    """Those coroutines. Where it was not read how long one sleeps, the clock tells until when; where neither was read, it may be for moments."""
    tasks = [t for t in one.process.async_tasks or () if t.chain and not serves(t) and not is_apart(t)]
    asleep = [(t, t.awaited) for t in tasks if sleeps_on(t) and not looks_at_variables(t)]
    lengths = [(t, a.delay_s if a.delay_s is not None else a.due_s) for t, a in asleep if a is not None]
    return [t for t, length_s in lengths if length_s is None or length_s < LONG_NAP_S]


def _holds_nothing(task: AsyncTask) -> bool:
    """Does it pause outside of any loop over what it is sent, as its source tells? It has nothing in hand that it would pass on."""
    return task.awaited is not None and task.awaited.kind == "sleep" and any(f.takes is False for f in task.chain)


def may_be_fed(one: Seen) -> str | None:
    """Why coroutines of an idle process may go on that wait for what another part of it hands on: data came for another, or its pause ends.

    So may those that went on meanwhile, where none stands.
    """
    ends = [e for e in one.ends if rank(e) < SERVES_RANK]
    moved = next((t for t in one.process.async_tasks or () if is_on_its_way(t) and not serves(t) and not is_apart(t) and not _holds_nothing(t)), None)
    if one.is_idle and moved is not None and not any(e.is_still for e in ends):
        return f"its coroutine {moved.name} went on while it was looked at"
    waiting = next((e for e in ends if e.is_still), None) if one.is_idle else None
    if waiting is None or waiting.is_cycle or waiting.is_lost or waiting.awaited.kind in LOCKS | OUTSIDE:
        return None
    fed = [e for e in one.ends if not e.is_still and e.awaited.kind == "socket" and (rank(e) < SERVES_RANK or pass_work_on(e.tasks))]
    if fed:
        came = "came" if any(got_data(one.process, e) or any(t.stable is False for t in e.tasks) for e in fed) else "may have come"
        return f"data {came} in for another coroutine than those at {waiting.at}, and it may hand something on"
    in_part = next((t for t in one.process.async_tasks or () if t.stable is False and is_read_in_part(t)), None)
    if in_part is not None:
        return f"its coroutine {in_part.name}, of which not all was read, went on and may hand something on"
    # where its source was read, only who goes round apart hands nothing on
    pauses = any(f.apart is False or (f.apart is None and f.goes_round is not None) for f in (t.chain[0] for t in napping(one)))
    return f"another coroutine than those at {waiting.at} pauses, and may hand something on when it wakes" if pauses else None


def starved_loops(one: Seen) -> set[int | None]:
    """Threads of event loops all of whose coroutines wait for threads of their own process, and some for a free one."""
    ends = [e for e in one.ends if rank(e) < SERVES_RANK]
    queued = any(is_queued(e.awaited) for e in ends) or any(t.awaited is not None and _lacks_thread(t.awaited) for t in one.process.async_tasks or ())
    starved = bool(ends) and queued and all(e.is_still and e.awaited.kind == "executor" for e in ends) and not ticks(one.process)
    return {t.tid for t in one.process.async_tasks or ()} if starved else set()


def given_up_s(one: Seen) -> float | None:
    """After how many seconds at most its coroutines give up what they wait for; None where one would wait on, or for longer than rare work takes."""
    ends = [e for e in one.ends if e.is_still and rank(e) < SERVES_RANK and (e.limit_s is not None or not _at_itself(one, e))]
    limits = [e.limit_s for e in ends if e.limit_s is not None and e.limit_s < RARE_CALL_S]
    return max(limits) if one.is_idle and limits and len(limits) == len(ends) else None


def untold_timers(one: Seen) -> int:
    """How many timers its loops have beside those of coroutines that sleep or give up: each may end a wait, and which was not read."""
    tasks = [t for t in one.process.async_tasks or () if t.timers is not None]
    timers = sum({t.loop: t.timers or 0 for t in tasks}.values())
    return timers - sum(t.gives_up_s is not None or (t.awaited is not None and t.awaited.kind == "sleep") for t in tasks)


def may_give_up(one: Seen) -> bool:
    """Do some of its coroutines give up what they wait for, and may the others do so by timers that were not told of any of them?"""
    ends = [e for e in one.ends if e.is_still and rank(e) < SERVES_RANK and (e.limit_s is not None or not _at_itself(one, e))]
    endless = [e for e in ends if e.limit_s is None]
    return one.is_idle and 0 < len(endless) < len(ends) and sum(len(e.tasks) for e in endless) <= untold_timers(one)


def _at_itself(one: Seen, end: End) -> bool:
    """Does a coroutine wait at connections whose other ends its own process holds? Another part of it is there, and waits for something itself."""
    own = {s.local: s.remote for s in one.process.sockets or () if s.state != "LISTEN" and s.family != "unix"}
    ends = [s for s in one.process.sockets or () if s.fd in end.descriptors]
    return bool(ends) and all(s.remote is not None and own.get(s.remote) == s.local for s in ends) and not is_write(end.awaited)


def is_half_read(view: View, one: Seen) -> bool:
    """Where the kernel told of others, a thread without its side of it, or without the place in the kernel where it sleeps, may wait for anybody."""
    thread = one.followed or one.telling
    if thread is None or thread.place.kind in IDLE_KINDS:
        return False
    kernel = thread.kernel
    if kernel is None:
        return kernel_was_read(view)
    sleeps_somewhere = kernel.state == "S" and kernel.wchan is None and kernel.syscall is not None
    return sleeps_somewhere and thread.place.kind is Kind.CODE and view.once(_channels_were_read)


def lacks_stack(view: View, one: Seen) -> bool:
    """Is it a Python of which no stack was read, where stacks of others were?"""
    return one.process.python is not None and not one.threads and not one.process.samples and view.has_stacks


def kernel_was_read(view: View) -> bool:
    """Was the kernel asked of any process? Stacks that somebody collected by hand come without; who reads them here counts over a window."""
    return view.once(_kernel_was_read)


def _kernel_was_read(view: View) -> bool:
    return any(one.process.threads or one.process.window_s is not None for one in view)


def _channels_were_read(view: View) -> bool:
    return any(t.wchan is not None for one in view for t in one.process.threads)


def has_loop(one: Seen) -> bool:
    """Does a thread of it run an event loop? Actors of Ray have one where their methods are coroutines."""
    return any(t.place.kind is Kind.LOOP_IDLE or (t.name or "").startswith(LOOP_THREADS) for t in one.threads)


def quiet_s(one: Seen) -> float | None:
    """Since when nothing came in on the connection in which a process is blocked, in seconds; None when it is in none, or that is not known."""
    kernel = one.telling.kernel if one.telling is not None and one.kind is Kind.SOCKET else None
    fd = descriptor(kernel)
    return next((s.quiet_s for s in one.process.sockets or () if s.fd == fd), None) if fd is not None else None


def puts_object(one: Seen) -> bool:
    """Does it put an object into Ray's store? How far that is cannot be seen."""
    return one.telling is not None and any(f.function.endswith("Worker.put_object") for f in one.telling.frames)


def _lacks_thread(awaited: Awaited) -> bool:
    """Are all the threads in use that anyio's limiter allows?"""
    return awaited.kind == "semaphore" and awaited.value == 0 and (awaited.detail or "").startswith("CapacityLimiter")
