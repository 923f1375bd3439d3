"""Rows of the table of outlooks that compare a running Ray call with the finished ones of its name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.call_ages import call_age
from ray_rl_debug.analyze.connections import RAY_PROCESSES, endpoint_key, is_rays, own_hosts, socket_owners
from ray_rl_debug.analyze.coroutines import LOCKS, SERVES_RANK, is_ray_call, rank
from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.lanes import waits_within
from ray_rl_debug.analyze.limits import (
    ANSWERS_FIT,
    ENOUGH_CALLS,
    FAR_OVERDUE,
    FROZEN_FLOOR_S,
    LANE_FACTOR,
    MANY_CALLS,
    NOT_OVERDUE,
    OLD_CALL_S,
    OVERDUE_FLOOR_S,
    RARE_CALL_S,
    USUAL_FACTOR,
)
from ray_rl_debug.analyze.nodes import NodeKind, kind_of
from ray_rl_debug.analyze.outlook_facts import EXACT, Facts
from ray_rl_debug.analyze.outlook_naps import hung_for_long, lives
from ray_rl_debug.analyze.pauses import ANSWER_S, is_asleep, is_plain_sleep, quiet_s, sleeps_with_gil
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.thread_scores import EXECUTORS
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_async import HANDED_OVER
from ray_rl_debug.model.snapshot import Frame

_CONNECTED = (RAY_PROCESSES - {"agent"}) | {"ray-worker", "driver"}


def callers_unread(f: Facts) -> str | None:
    """Its call waits inside for what another call may set or give back, and which calls somebody else runs was not read: that one may make it."""
    if f.waits or f.view.ray is None or f.one.process.kind != "ray-worker" or not _waits_for_call(f.one):
        return None
    if any(sleeps_with_gil(t) for t in f.one.threads):
        return None  # whoever calls, it takes no call
    callers = (*f.view.once(_with_unread_calls), *f.view.once(_not_seen), *f.view.once(_with_unread_connections))
    unread = next(iter((*_untold_calls(f.view, f.one), *_unread_coroutines(f.one), *_unseen_peers(f.view, f.one), *callers)), None)
    return f"{f.one.motion_reason}; {unread} was not read" if unread is not None else None


def _waits_for_call(one: Seen) -> bool:
    ends = [e for e in one.ends if e.is_still and rank(e) < SERVES_RANK] if one.is_idle else []
    calls = any(t.awaited is not None and t.awaited.kind in HANDED_OVER and is_ray_call(t) for t in one.process.async_tasks or () if one.is_idle)
    return calls or one.kind is Kind.EVENT or any(e.awaited.kind in LOCKS | HANDED_OVER for e in ends)


def _untold_calls(view: View, one: Seen) -> Iterator[str]:
    """Has it run more calls than Ray tells of, so that some are missing in Ray's tables? Who may call it next is not known then."""
    name = one.identity.class_name
    if name is not None and _tells_calls(view) and view.once(_calls_begun).get(name, 0) > view.once(_calls_told).get(name, 0):
        yield f"which calls of {name} have finished"


def _unread_coroutines(one: Seen) -> list[str]:
    calls = [t for t in one.process.async_tasks or () if is_ray_call(t) and t.awaited is None]
    return [f"what its coroutine {t.name} waits for" for t in calls]


def _unseen_peers(view: View, one: Seen) -> Iterator[str]:
    """Connections whose other ends are on machines that were looked at, and were not seen there."""
    owners, node, hosts = socket_owners(view), one.node.name, own_hosts(view)
    for socket in one.process.sockets or ():
        if socket.family.startswith("tcp") and socket.state == "ESTABLISHED" and socket.remote is not None:
            remote = endpoint_key(node, socket.remote)
            if remote[0] in hosts and (remote, endpoint_key(node, socket.local)) not in owners and not is_rays(view, one, socket, owners):
                yield f"with whom it is connected at {socket.local}"


def _not_seen(view: View) -> list[str]:
    """Drivers and actors that live, as Ray says, and whose processes were not seen."""
    ray = view.ray
    drivers = {one.process.pid for one in view if one.process.kind in ("driver", "named")}
    alone = [f"what the driver (pid {j.driver_pid}) does" for j in (ray.jobs if ray is not None else ()) if j.alive and j.driver_pid not in drivers]
    actors = [a for a in (ray.actors if ray is not None else ()) if a.state == "ALIVE" and a.actor_id not in view.by_actor]
    return [*alone, *(f"what the process of {a.class_name} does" for a in actors)]


def _calls_begun(view: View) -> Counter[str]:
    """By class of actor, as their workers count; not where some come and go, as the tables are of another moment."""
    found: Counter[str] = Counter()
    for one in view:
        if one.core is not None and one.core.actor_id is not None and one.identity.class_name is not None:
            begun = one.core.executed_tasks
            found[one.identity.class_name] += begun if begun is not None and begun == one.core.executed_tasks_before else -_MANY
    return found


_MANY = 1 << 40
"""More than any actor runs."""


def _calls_told(view: View) -> Counter[str]:
    """By class of actor: those that have finished or failed, and those that run."""
    found: Counter[str] = Counter()
    for calls in view.ray.history if view.ray is not None else ():
        found[_class_of(calls.name)] += calls.count
    for task in view.ray.failed if view.ray is not None else ():
        found[_class_of(task.name)] += 1
    for one in view:
        if one.core is not None and one.identity.class_name is not None:
            found[one.identity.class_name] += len(one.core.running_task_ids)
    return found


def _with_unread_calls(view: View) -> list[str]:
    workers = (one for one in view if one.process.kind == "ray-worker" and not one.has_ended)
    return [f"which calls {one.name} (pid {one.process.pid}) runs" for one in workers if _is_unread(one) or _runs_unknown(view, one)]


def _with_unread_connections(view: View) -> list[str]:
    """Any connection of an actor may lead to one of these; else only Ray's own processes and its calls are connected to it."""
    of_ray = (p for node in view.snapshot.nodes for p in node.processes if p.kind in _CONNECTED and p.state not in ("Z", "X"))
    return [f"with whom pid {p.pid} ({p.kind}) is connected" for p in of_ray if p.sockets is None]


def _tells_calls(view: View) -> bool:
    """Does Ray tell of calls at all? It may have been told to keep none."""
    return bool(view.tasks) or (view.ray is not None and bool(view.ray.history))


def _class_of(call: str) -> str:
    """``Engine`` of ``Engine.step``, and of ``engine_0:Engine.__init__``, as Ray calls the creation of an actor with a name."""
    return call.rpartition(":")[2].rpartition(".")[0]


def _is_unread(one: Seen) -> bool:
    """Did Ray not tell of it, or of no call of it, while it stands in one?"""
    if one.core is None or one.core.running_task_ids or one.is_idle:
        return one.core is None
    return bool(one.identity.method) or (one.telling is not None and one.telling.stack.once(_is_in_ray_call))


def _runs_unknown(view: View, one: Seen) -> bool:
    """Is it an actor that Ray's tables lack, or does it stand in a call that they lack? Of one that goes on they tell another moment."""
    core = one.core
    if core is None or view.ray is None or core.executed_tasks != core.executed_tasks_before:
        return False
    unlisted = core.actor_id is not None and core.actor_id not in view.actors
    return unlisted or (_tells_calls(view) and not view.tasks.keys() >= set(core.running_task_ids))


def _is_in_ray_call(frames: Sequence[Frame]) -> bool:
    return any(f.function.rpartition(".")[2] in EXECUTORS for f in frames)


def few_calls(f: Facts) -> str | None:
    """It works, and too few calls of its name have finished to compare with."""
    few = f.one.motion is Motion.BUSY and f.call.finished < ENOUGH_CALLS
    return f"{f.call.text}, of {f.call.finished}: too few to judge one that works" if _is_known(f) and few else None


def took_apart(f: Facts) -> str | None:
    """It works no longer than one of the few calls that stand apart from the others."""
    age, usual, apart = f.call.age_s, f.call.usual_s, f.call.longest_s
    if age is None or usual is None or f.one.motion is not Motion.BUSY or apart <= usual:
        return None
    return f"{f.call.text}: too early to tell" if max(NOT_OVERDUE * usual, OVERDUE_FLOOR_S) < age <= USUAL_FACTOR * apart else None


def overdue(f: Facts) -> str | None:
    """It takes far longer than the longest of its name."""
    age, usual = f.call.age_s, f.call.usual_s
    if age is None or usual is None:
        return None
    if not f.stands_still and f.call.finished < MANY_CALLS and age <= min(FAR_OVERDUE * usual, ANSWER_S):
        return None  # it runs, or pauses again and again, and the next call of so few may well take longer than all of them
    if age < RARE_CALL_S and (lives(f) or computes(f)):
        return None
    early = f.stands_still or (age > FAR_OVERDUE * usual and not is_asleep(f.view, f.one))
    return f.call.text if age > max(USUAL_FACTOR * usual, FROZEN_FLOOR_S if early else OVERDUE_FLOOR_S) else None


def computes(f: Facts) -> bool:
    """Is it at work, and may this be a rare step, such as an evaluation, which takes longer than all before?

    Not in a loop of one function of Python all the while, where its fellows have done the same and have come to the collective that lacks it.
    """
    if f.one.motion is not Motion.BUSY or hung_for_long(f):
        return False
    in_one = len({(p.path[0][:2], p.path[1:]) for p in f.one.places if p.path}) < 2
    return f.asked_for.isdisjoint(_OF_FELLOWS) or not in_one or _is_in_c(f)


_OF_FELLOWS = frozenset({Why.COLLECTIVE, Why.P2P, Why.SAME_CALL})


def _is_in_c(f: Facts) -> bool:
    """Is it in one call of C, which has let go of the interpreter?"""
    thread = f.one.followed or f.one.telling
    if thread is None or thread.place.kind is not Kind.CODE or len({p.path for p in f.one.places}) != 1:
        return False
    met = [t.owns_gil for sample in f.one.process.samples for t in sample.threads if t.tid == thread.tid]
    return len(met) > 1 and False in met and True not in met


def alive(f: Facts) -> str | None:
    """It would be overdue, and sleeps: a step of many naps, or a rare one in one long pause, may well take longer than ever before."""
    age, usual = f.call.age_s, f.call.usual_s
    if age is None or usual is None or not max(USUAL_FACTOR * usual, FROZEN_FLOOR_S) < age < RARE_CALL_S or not lives(f):
        return None
    return f"{f.call.text}; it sleeps for a time, and its clock wakes it"


def as_usual(f: Facts) -> str | None:
    """It takes no longer than such calls do."""
    age, usual = f.call.age_s, f.call.usual_s
    return f"{f.call.text}: not overdue" if age is not None and usual is not None and age <= NOT_OVERDUE * usual else None


def early(f: Facts) -> str | None:
    """It takes longer than such calls do, but not by far."""
    return f"{f.call.text}: too early to tell" if _is_known(f) else None


def _is_known(f: Facts) -> bool:
    return f.call.age_s is not None and f.call.usual_s is not None


def overdue_for_others(f: Facts) -> str | None:
    """Who serves has no call of its own: how long the calls that wait for it take tells."""
    calls = (call_age(f.view, f.view.seen[e.source]) for e in f.asked if e.why not in EXACT and e.source in f.view.seen)
    known = [c for c in calls if c.age_s is not None and c.usual_s is not None and c.finished >= ENOUGH_CALLS]
    thread = f.one.followed or f.one.telling
    if f.lacks_kernel or f.lacks_stack or is_plain_sleep(f.one) or (thread is not None and thread.place.kind is Kind.SLEEP and thread.kernel is None):
        return None  # in one pause, which its clock soon ends, or may do so
    least_s = RARE_CALL_S if lives(f) or f.one.motion is Motion.BUSY else OVERDUE_FLOOR_S
    late = [c for c in known if (c.age_s or 0.0) > max(USUAL_FACTOR * (c.usual_s or 0.0), least_s)]
    return f"its waiter is overdue: {late[0].text}" if late and len(late) == len(known) else None


def answers_came(f: Facts) -> str | None:
    """Its connection is quiet for a small part of its call: earlier answers may have taken as long."""
    age, quiet = f.call.age_s, quiet_s(f.one)
    if age is None or quiet is None or quiet >= ANSWER_S or age <= max(ANSWERS_FIT * quiet, OLD_CALL_S):
        return None
    return (
        f"its call runs for {age:.0f} s and this connection is quiet for {quiet:.0f} s. Too early to tell: earlier answers may have taken this long"
    )


def may_be_ended(f: Facts) -> str | None:
    """Calls of an actor come and go beside a lane that waits inside of it: each may end that wait, until it takes far longer than ever."""
    if f.one.lane_of is None or kind_of(f.one.key) is not NodeKind.LANE or not waits_within(f.one):
        return None
    lanes = any(kind_of(e.target) is NodeKind.LANE for e in f.waits if e.why is Why.INSIDE)
    if lanes and f.view.all_stand(f.view.seen[f.one.lane_of]):
        return None  # calls that are under way come before those that may follow
    known = _is_known(f) and f.call.finished >= ENOUGH_CALLS
    late = known and (f.call.age_s or 0.0) > max(LANE_FACTOR * (f.call.usual_s or 0.0), OLD_CALL_S)
    return None if late else "other calls of its process finish, and one of them may end its wait"
