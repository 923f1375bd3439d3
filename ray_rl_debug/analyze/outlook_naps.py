"""Naps: does one that is found asleep at one line through a long window only pause there, each time anew?"""

from __future__ import annotations

from ray_rl_debug.analyze.by_hand import hung_for_s
from ray_rl_debug.analyze.connections import RAY_PROCESSES, is_rays, lacks_client, socket_owners
from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.handlers import waiting_thread
from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import ENDED_BY_LOOPS, IDLE_KINDS, THREAD_WAITS, WAITS_FOR_RANKS, Kind
from ray_rl_debug.analyze.limits import RARE_CALL_S
from ray_rl_debug.analyze.looks import looks_at
from ray_rl_debug.analyze.lost_ends import sees_all_below
from ray_rl_debug.analyze.outlook_facts import FOR_ITS_END, Facts
from ray_rl_debug.analyze.pauses import has_loop, is_asleep, may_wake_soon, wakes_in_time, wakes_often
from ray_rl_debug.analyze.pools import feeder_at_work
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen, describe_place
from ray_rl_debug.analyze.thread_scores import executes
from ray_rl_debug.analyze.unwoken_loops import unwoken
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import has_orphans, pool_rests
from ray_rl_debug.analyze.waits_looks import AT_ADDRESS


def feeder_pauses(f: Facts) -> str | None:
    """Does it wait for a pool that has nothing to do, while its own thread that hands out the work only pauses in the program?"""
    feeder = feeder_at_work(f.one) if f.one.kind is Kind.MP_QUEUE else None
    if feeder is None or feeder.place.kind is not Kind.SLEEP or (feeder.kernel is not None and not may_wake_soon(feeder.kernel)):
        return None
    return f"the thread of its pool that hands out work {describe_place(feeder.place)}" if pool_rests(f.view, f.one) else None


def lives(f: Facts) -> bool:
    """Does its clock wake it in time, at a line that looks for nothing, or for what somebody may bring? Then time alone speaks against it.

    Time enough does, where the user says that the run has hung for so long. A look that nobody seen could end is a wait like any other: its own
    waking is no progress.
    """
    if hung_for_long(f):
        return False
    thread = f.one.followed or f.one.telling
    at_pause = thread is not None and thread.place.kind is Kind.SLEEP and bool(thread.frames)
    looks = thread.frames[0].looks if thread is not None and at_pause else None
    return wakes_in_time(f.view, f.one) and (looks is None or _reads_pieces(f) or _may_come(f, looks) or _asked_once(f))


def _lack_clients(view: View) -> dict[str, bool]:
    """On which machines somebody has accepted a connection of a client there that was not seen."""
    served = ((one, s) for one in view for s in one.process.sockets or () if s.state == "ESTABLISHED" and one.process.kind not in RAY_PROCESSES)
    return {one.node.name: True for one, socket in served if lacks_client(view, one, socket)}


def _asked_once(f: Facts) -> bool:
    """Did its call use a connection at its begin, and none since? It sleeps before it asks for the second time: nothing was in vain yet.

    So it may be where its connections were not read, or since when one of them has been quiet.
    """
    age, owners, sockets = f.call.age_s, socket_owners(f.view), f.one.process.sockets
    if age is None:
        return False
    if sockets is None:
        return not f.view.by_hand
    own = [s for s in sockets if s.state == "ESTABLISHED" and s.family.startswith("tcp") and not is_rays(f.view, f.one, s, owners)]
    if not own and f.view.once(_lack_clients).get(f.one.node.name):
        return True  # the connection of somebody on its machine was not read
    since = [age - (s.quiet_s if s.quiet_s is not None else age) for s in own]
    return bool(since) and max(since) < _TO_ASK_S and any(s > -_TO_ASK_S for s in since)


_TO_ASK_S = 1.0
"""A call asks so soon after it began, if it asks at its begin at all."""


def hung_for_long(f: Facts) -> bool:
    """Has the run hung for longer than rare work takes, as its user says or the companion has seen?"""
    return (hung_for_s(f.view.snapshot) or 0.0) >= RARE_CALL_S


def kept_at_it(f: Facts) -> str | None:
    """Others wait for it, it uses a core or waits for its GPU, and the run has hung for longer than rare work takes: slow or not, it is why."""
    hung = hung_for_s(f.view.snapshot) or 0.0
    works = f.one.motion in (Motion.BUSY, Motion.UNKNOWN) and len(f.one.places) > 1 and not f.one.is_idle
    matters = bool(f.asked_for) or f.one.kind in WAITS_FOR_RANKS
    return f"{f.one.motion_reason}; the run has hung for {hung / 60:.0f} min" if works and matters and hung_for_long(f) else None


def writes(view: View, key: str) -> bool:
    """Does a process stand in a write?"""
    thread = waiting_thread(view.seen[key]) if key in view.seen else None
    return thread is not None and kernel_call(thread.kernel) == "write"


def _reads_pieces(f: Facts) -> bool:
    """Does somebody write into a pipe for it, and did it read meanwhile, or is that not known? Then its look takes a piece each time.

    So it does where the look itself is a read and one pause fills the window: it takes the next piece when it wakes up.
    """
    thread = f.one.followed or f.one.telling
    rests = thread is not None and thread.kernel is not None and not wakes_often(f.one, thread.kernel)
    takes = thread is not None and rests and bool(thread.frames) and not _READS.isdisjoint(thread.frames[0].looks or ())
    writers = (e.source for e in f.asked if e.why is Why.PIPE)
    return (takes or f.one.process.read_bytes != 0) and any(writes(f.view, source) for source in writers)


_READS = frozenset({"read", "read1", "readinto", "readline", "readlines", "recv", "recv_into", "recv_bytes"})


def may_nap(f: Facts) -> bool:
    """Does its clock wake it soon, at a line that looks for nothing? Each window may meet it in another nap of its work."""
    thread = f.one.followed or f.one.telling
    if thread is None or thread.kernel is None or thread.place.kind is not Kind.SLEEP or not may_wake_soon(thread.kernel) or thread.sample.owns_gil:
        return False
    frame = thread.frames[0] if thread.frames else None
    if frame is None:
        return True
    keeps_rhythm = frame.goes_round is True and not f.asked_for <= FOR_ITS_END and wakes_often(f.one, thread.kernel)
    return not keeps_rhythm and (frame.looks is None or _may_come(f, frame.looks))


def _may_come(f: Facts, looks: tuple[str, ...]) -> bool:
    """May what it looks for come, as far as is known? At variables alone it looks where they change: inside of its process."""
    return _may_be_brought(f) if looks else _may_be_changed(f)


def _may_be_brought(f: Facts) -> bool:
    """Is it unknown who makes what it looks for, and does somebody go on, or sleep, who does not wait for it? That one may make it.

    So may one that was not seen: the parent of somebody's child.
    """
    return not f.waits and (has_orphans(f.view, f.one) or _others_are_awake(f))


def _others_are_awake(f: Facts) -> bool:
    waiters = {e.source for e in f.asked}
    return any(other.key not in waiters and other.process is not f.one.process for other in f.view.once(awake))


def _may_be_changed(f: Facts) -> bool:
    """Does another of its threads do more than rest inside of it? In an actor with several threads the next call of somebody awake does, too."""
    thread = f.one.followed or f.one.telling
    beside = (t for t in f.one.threads if t is not thread and t.place.path and t.place.kind not in IDLE_KINDS and looks_at(t) != ())
    if any(t.place.timed or t.place.kind not in THREAD_WAITS for t in beside):
        return True
    is_one_of_many = thread is not None and thread.tid != f.one.process.pid and executes(thread.sample, thread.frames)
    return f.one.process.kind == "ray-worker" and is_one_of_many and not has_loop(f.one) and _others_are_awake(f)


def awake(view: View) -> list[Seen]:
    """Whoever runs, gets somewhere or sleeps for a time, or may do so, as its stack was not read."""
    return [one for one in view if not one.is_idle and not one.is_stopped and (one.is_at_work or is_asleep(view, one) or _is_dark(one))]


def _is_dark(one: Seen) -> bool:
    """Was its stack not read, and is it a Python, or one that comes back to its pause again and again?"""
    if one.threads or one.has_ended:
        return False
    return one.process.python is not None or any(kernel_call(t) == "sleep" and wakes_often(one, t) for t in one.process.threads[:1])


def request_may_come(f: Facts) -> str | None:
    """It waits for what another thread hands on, and one of them serves a port: whoever goes on may send that."""
    if f.one.kind not in ENDED_BY_LOOPS or f.one.is_stopped or not _serves_beside(f.one):
        return None
    behind = {e.source for e in f.asked} | {f.one.key}
    other = next((o for o in f.view.once(awake) if o.key not in behind), None)
    if other is None and f.one.process.child_count is not None and not sees_all_below(f.view, f.one):
        return "one of its threads serves a port, and a child of it that was not seen may send what it waits for"
    return f"one of its threads serves a port, and {other.identity.label}, which {other.does()}, may send what it waits for" if other else None


def _serves_beside(one: Seen) -> bool:
    """Does a thread beside the telling one wait for clients, at a port that is none of Ray's, or at what was not read?"""
    ports = {s.fd for s in one.process.sockets or () if s.state == "LISTEN" and s.fd is not None}
    known = {s.fd for s in one.process.sockets or ()} | {f.fd for f in one.process.files or ()}
    for thread in one.threads:
        watched = thread.kernel.waits_on_fds if thread.kernel is not None else None
        may_watch = bool(ports) if watched is None else not (ports.isdisjoint(watched) and known.issuperset(watched))
        at_port = thread.place.op == _SERVES or thread.listens or one.process.sockets is None or may_watch
        if thread is not one.telling and thread.place.kind is Kind.LOOP_IDLE and at_port:
            return True
    return False


_SERVES = "serve_forever"


def asks_nobody_seen(f: Facts) -> str | None:
    """Between two pauses it tries again whether somebody answers: who should do so was not seen."""
    thread = f.one.followed or f.one.telling
    looks = thread.frames[0].looks if thread is not None and thread.frames and thread.place.kind is Kind.SLEEP else None
    if f.waits or AT_ADDRESS.isdisjoint(looks or ()) or may_nap(f):
        return None
    return f"{f.one.motion_reason}; it tries again and again whether somebody answers, and who should was not seen"


def is_not_woken(f: Facts) -> str | None:
    task = unwoken(f.one)
    return f"its coroutine {task.name} could go on, but its event loop sleeps" if task is not None else None
