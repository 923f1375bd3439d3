"""What each activity's own facts say of its future: one ordered table, the only place that asks about motion, time and missing facts.

The first row that applies decides. A row gives its reason in words for people. What an activity waits for is no matter of this table:
hope comes from there by `solve`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ray_rl_debug.analyze import outlook_asked, outlook_calls, outlook_inside, outlook_naps
from ray_rl_debug.analyze.by_hand import hung_for_s, is_stacks_alone
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.ended import ended
from ray_rl_debug.analyze.ending_calls import call_behind
from ray_rl_debug.analyze.ends_in_window import child_ended, ended_children, script_goes_on, took_child
from ray_rl_debug.analyze.handlers import (
    waiting_thread,
)
from ray_rl_debug.analyze.kinds_of_places import THREAD_WAITS, WAITS_FOR_RANKS, WAITS_FOR_RAY, Kind
from ray_rl_debug.analyze.limits import LONG_WINDOW_S
from ray_rl_debug.analyze.locks_in_ring import locks_in_ring
from ray_rl_debug.analyze.looks import looks_at_variables
from ray_rl_debug.analyze.nodes import NodeKind, kind_of
from ray_rl_debug.analyze.outlook_facts import EXACT, LOOKS, Facts, facts_of
from ray_rl_debug.analyze.outlook_naps import asks_nobody_seen, lives
from ray_rl_debug.analyze.own_file_locks import tries_own_lock
from ray_rl_debug.analyze.pauses import (
    ANSWER_S,
    MAY_HAVE_LIMIT,
    given_up_s,
    is_half_read,
    limit_s,
    may_be_fed,
    may_give_up,
    puts_object,
    rests,
    wakes_first,
)
from ray_rl_debug.analyze.pools import ended_workers, ends_in_vain
from ray_rl_debug.analyze.progress import Motion, came_lately
from ray_rl_debug.analyze.rank_counters import Joined
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.signals import may_get_signal
from ray_rl_debug.analyze.solve import Activity, Outlook
from ray_rl_debug.analyze.unread_coroutines import is_blind
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_assumed import DISTANCE
from ray_rl_debug.analyze.waits_poll import is_poller
from ray_rl_debug.model.report import Certainty


class Needs(enum.Flag):
    """What a row says nothing without, so that it need not be asked."""

    NOTHING = 0
    WAITS = enum.auto()
    """The activity waits for somebody."""
    ASKED = enum.auto()
    """Somebody waits for it."""
    LANE = enum.auto()
    """It is a part of a process."""
    COROUTINES = enum.auto()
    """It has any."""
    FILE_LOCKS = enum.auto()
    """Somebody on its machine has locked a file."""
    COUNTERS = enum.auto()
    """Counters of ranks were read."""


class Row(NamedTuple):
    """One row of the table."""

    name: str
    outlook: Outlook
    reason: Callable[[Facts], str | None]
    """Why the row applies; None where it does not."""
    certainty: Certainty = Certainty.LIKELY
    """Of STANDS: how sure."""
    needs: Needs = Needs.NOTHING
    at: frozenset[Kind] | None = None
    """It says nothing of a process none of whose threads stands in one of these kinds of places."""


def _dead(f: Facts) -> str | None:
    return f"it has ended (state {f.one.process.state})" if f.one.has_ended else None


def _failed(f: Facts) -> str | None:
    said = ended(f.one)
    return f"it {'is gone' if said.kind == 'unread' else 'ended with an error'}: {said.text[:120]}" if said is not None else None


def _stopped(f: Facts) -> str | None:
    return f"it is {f.one.stopped_how}" if f.one.is_stopped else None


def _looks_again(f: Facts) -> str | None:
    """A loop that looks again and again waits for those who could change what it looks at: its own waking is no progress."""
    for edge in f.waits:
        if edge.why in LOOKS and edge.certainty is not Certainty.POSSIBLE:
            return "it only polls for what others should deliver"
    return None


def _moves(f: Facts) -> str | None:
    return f.one.motion_reason if f.one.motion is Motion.MOVING else None


def _looks_at_variables(f: Facts) -> str | None:
    if not looks_at_variables(f.view, f.one):
        return None
    return "it looks again and again at variables of its own, and none of its threads does anything else that could change them"


def _ended_behind(f: Facts) -> str | None:
    behind = call_behind(f.view, f.one)
    return f"it goes round until {behind[0].name} sets its flag, and that call stands behind it for {behind[1]:.0f} s" if behind is not None else None


def _advanced(f: Facts) -> str | None:
    return "it made progress during the window" if f.one.key in f.joined.advanced else None


def _counted(f: Facts) -> str | None:
    sure = f.joined.still.get(f.one.key) in (Certainty.PROVEN, Certainty.LIKELY)
    return "its counters stand still" if sure and not f.one.threads and not f.lacks_stack else None


def _waits(f: Facts) -> str | None:
    """Whoever waits for what can be named has no other future than that."""
    for edge in f.waits:
        if edge.why in EXACT:
            return f.one.motion_reason
    return None


def _has_limit(f: Facts) -> str | None:
    limit = limit_s(f.one)
    return f"its wait has a limit, and ends by itself in {limit:.0f} s" if limit is not None else None


def _puts(f: Facts) -> str | None:
    return "it puts an object into Ray's store, and its progress cannot be read" if puts_object(f.one) else None


def _gives_up(f: Facts) -> str | None:
    limit = given_up_s(f.one)
    return f"its coroutines give up what they wait for after {limit:g} s" if limit is not None else None


def _timer_untold(f: Facts) -> str | None:
    return "a timer of its loop may end a wait of its coroutines, and which was not read" if may_give_up(f.one) else None


def _script(f: Facts) -> str | None:
    return "the shell that it waits for woke up during the window: its script goes on" if script_goes_on(f.view, f.one) else None


def _children(f: Facts) -> str | None:
    goes_on = child_ended(f.view, f.one) or _next_began(f)
    return "a child that it waits for started or ended during the window, so its script goes on" if goes_on else None


def _next_began(f: Facts) -> bool:
    """Does it wait for a child, or at a pipe, that was not there at the first look, and has it done with another one since? That is the next one."""
    unseen = any(e.why is Why.PIPE and kind_of(e.target) is NodeKind.UNSEEN for e in f.waits)
    return unseen and bool(ended_children(f.one) or took_child(f.one))


def _workers_in_vain(f: Facts) -> str | None:
    return "its workers end before they have delivered anything, and others take their places" if ends_in_vain(f.one) else None


def _workers_replaced(f: Facts) -> str | None:
    return "workers of its pool ended during the window, and others take their places" if ended_workers(f.one) else None


def _blind(f: Facts) -> str | None:
    return f"{f.one.motion_reason}; its coroutines could not be read" if is_blind(f.view, f.one) else None


def _asks_unseen(f: Facts) -> str | None:
    return f"{f.one.motion_reason}; for whom it waits was not seen" if f.one.kind in WAITS_FOR_RAY and not f.waits else None


def _receives_unseen(f: Facts) -> str | None:
    is_receiver = f.one.kind is Kind.CHANNEL and f.one.identity.part is None and not f.waits
    return f"{f.one.motion_reason}; who should send the message was not seen" if is_receiver else None


def _group_unread(f: Facts) -> str | None:
    """It waits for ranks, and nothing tells which: torch's groups were read of others, and not of it."""
    if f.waits or f.one.kind not in WAITS_FOR_RANKS or f.one.process.torch is not None or not f.view.once(_groups_were_read):
        return None
    return f"{f.one.motion_reason}; for which ranks it waits was not read"


def _groups_were_read(view: View) -> bool:
    return any(one.process.torch is not None for one in view)


def _half_read(f: Facts) -> str | None:
    if f.waits or not is_half_read(f.view, f.one) or child_ended(f.view, f.one):
        return None
    return f"{f.one.motion_reason}; in which call its thread is was not read"


def _outward(f: Facts) -> str | None:
    """Stacks alone tell that it waits for somebody, and not for whom: an answer may well come, and the next wait begin."""
    if not f.view.by_hand or not is_stacks_alone(f.one.process) or (hung_for_s(f.view.snapshot) or 0.0) >= ANSWER_S:
        return None
    thread = waiting_thread(f.one)
    kind = thread.place.kind if thread is not None else None
    waits = kind in THREAD_WAITS or kind in DISTANCE or kind is Kind.FLOCK
    return f"{f.one.motion_reason}; its stack does not tell for whom it waits" if waits else None


def _unread(f: Facts) -> str | None:
    return f.one.motion_reason if f.one.motion is Motion.UNKNOWN else None


def _frozen(f: Facts) -> str | None:
    long = f.one.motion is Motion.FROZEN and max(f.one.process.window_s or 0.0, hung_for_s(f.view.snapshot) or 0.0) > LONG_WINDOW_S
    return f.one.motion_reason if f.stands_still or (long and not rests(f.one) and not lives(f)) else None


def _came_lately(f: Facts) -> str | None:
    thread = f.one.telling.kernel if f.one.telling is not None else None
    return "it came to this wait during the window" if came_lately(f.one.process, f.one.places, thread) else None


def _works(f: Facts) -> str | None:
    """One that runs may get somewhere or go round for ever: only calls that have ended tell."""
    runs = f.one.motion is Motion.BUSY and not any(p.timed for p in f.one.places)
    return f"{f.one.motion_reason}; no finished call of its kind to compare with" if runs else None


def _polls(f: Facts) -> str | None:
    if f.one.place is not None and f.one.place.timed and wakes_first(f.one) and is_poller(f.one) is None:
        return None  # taken for a poller by its name alone, and in one pause that the clock soon ends
    return "it polls for what others should deliver, and no process was seen that delivers it" if is_poller(f.one) is not False else None


def _engine_sleeps(f: Facts) -> str | None:
    """The steps of an engine sleep for nobody; what it is asked to do besides may."""
    return f"{f.one.motion_reason}; the processes of an engine seldom sleep" if f.one.identity.part is not None else None


def _pauses(f: Facts) -> str | None:
    return f"it pauses; {f.one.motion_reason}; no finished call of its kind to compare with"


TABLE: tuple[Row, ...] = (
    Row("dead", Outlook.STANDS, _dead, Certainty.PROVEN),
    Row("ended with an error", Outlook.STANDS, _failed),
    Row("stopped", Outlook.STANDS, _stopped, Certainty.PROVEN),
    Row("looks again", Outlook.STANDS, _looks_again, needs=Needs.WAITS),
    Row("no descriptor for those in its queue", Outlook.STANDS, outlook_asked.lacks_descriptors, needs=Needs.ASKED),
    Row("moves", Outlook.MOVES, _moves),
    Row("the call that would end it stands behind it", Outlook.STANDS, _ended_behind, at=frozenset({Kind.SLEEP})),
    Row("looks at its own variables", Outlook.STANDS, _looks_at_variables),
    Row("nobody wakes its loop", Outlook.STANDS, outlook_naps.is_not_woken, needs=Needs.COROUTINES),
    Row("tries a lock that it has itself", Outlook.STANDS, tries_own_lock, needs=Needs.FILE_LOCKS),
    Row("its thread has ended, as its fellows show", Outlook.STANDS, outlook_asked.lacks_thread, needs=Needs.ASKED),
    Row("a module and a thread wait for each other", Outlook.STANDS, outlook_inside.imports_in_ring, at=THREAD_WAITS),
    Row("its threads have the locks that they wait for", Outlook.STANDS, locks_in_ring, at=frozenset({Kind.LOCK})),
    Row("another call may end its wait", Outlook.MOVES, outlook_calls.may_be_ended, needs=Needs.LANE),
    Row("counters went on", Outlook.MOVES, _advanced, needs=Needs.COUNTERS),
    Row("counters stand still", Outlook.STANDS, _counted, needs=Needs.COUNTERS),
    Row("its wait has a limit", Outlook.WAKES, _has_limit, at=MAY_HAVE_LIMIT),
    Row("its loop turns by its clock", Outlook.WAKES, outlook_asked.turns, needs=Needs.ASKED),
    Row("another thread of its pool goes on", Outlook.WAKES, outlook_inside.fellow_goes_on, at=frozenset({Kind.LOOP_IDLE})),
    Row("waits for what can be named", Outlook.STANDS, _waits, needs=Needs.WAITS),
    Row("serves forever", Outlook.STANDS, outlook_asked.serves_for_ever, needs=Needs.ASKED),
    Row("does not read", Outlook.STANDS, outlook_asked.fills_pipe, needs=Needs.ASKED),
    Row("its child has just begun", Outlook.WAKES, outlook_asked.child_began, needs=Needs.ASKED),
    Row("a child that does not end", Outlook.STANDS, outlook_asked.old_child, needs=Needs.ASKED),
    Row("does not accept", Outlook.STANDS, outlook_asked.leaves_clients, needs=Needs.ASKED),
    Row("a client may bring what its requests wait for", Outlook.WAKES, outlook_asked.client_pauses, needs=Needs.ASKED),
    Row("coroutines on the way to an answer", Outlook.WAKES, outlook_asked.serves_in_coroutine, needs=Needs.ASKED),
    Row("a thread on the way to an answer", Outlook.WAKES, outlook_asked.handler_pauses, needs=Needs.ASKED),
    Row("a thread with the next piece pauses", Outlook.WAKES, outlook_inside.giver_pauses),
    Row("a thread that may end its wait pauses", Outlook.WAKES, outlook_inside.helper_pauses),
    Row("the thread that feeds its pool pauses", Outlook.WAKES, outlook_naps.feeder_pauses),
    Row("a coroutine that may end its wait goes on", Outlook.WAKES, outlook_inside.coroutine_goes_on, needs=Needs.COROUTINES),
    Row("a request to its port may end its wait", Outlook.WAKES, outlook_naps.request_may_come),
    Row("a thread of a library may end its wait", Outlook.UNSEEN, outlook_inside.library_goes_on),
    Row("a thread that may end its wait was not read", Outlook.UNSEEN, outlook_inside.helper_unread),
    Row("a thread that may end its wait works", Outlook.UNSEEN, outlook_inside.helper_works),
    Row("its thread has ended", Outlook.WAKES, outlook_inside.came_to_end),
    Row("its children work", Outlook.WAKES, outlook_asked.works_below, needs=Needs.ASKED),
    Row("a program that may end", Outlook.WAKES, outlook_asked.young_program, needs=Needs.ASKED),
    Row("a worker begins", Outlook.WAKES, outlook_asked.worker_begins, needs=Needs.ASKED),
    Row("no Python, and stands still", Outlook.STANDS, outlook_asked.foreign, needs=Needs.ASKED),
    Row("the kernel's side was not read", Outlook.UNSEEN, _half_read),
    Row("waits for a Ray call that nobody was seen to run", Outlook.UNSEEN, _asks_unseen),
    Row("for which ranks it waits was not read", Outlook.UNSEEN, _group_unread),
    Row("waits for a message of nobody that was seen", Outlook.UNSEEN, _receives_unseen),
    Row("who may end its wait by a call was not read", Outlook.UNSEEN, outlook_calls.callers_unread),
    Row("too few calls to compare with", Outlook.WAKES, outlook_calls.few_calls),
    Row("few calls took as long", Outlook.WAKES, outlook_calls.took_apart),
    Row("overdue, and wakes by its clock", Outlook.WAKES, outlook_calls.alive),
    Row("overdue", Outlook.STANDS, outlook_calls.overdue),
    Row("not overdue", Outlook.MOVES, outlook_calls.as_usual),
    Row("perhaps overdue", Outlook.WAKES, outlook_calls.early),
    Row("overdue for those who wait", Outlook.STANDS, outlook_calls.overdue_for_others, needs=Needs.ASKED),
    Row("earlier answers took this long", Outlook.WAKES, outlook_calls.answers_came),
    Row("puts an object", Outlook.UNSEEN, _puts),
    Row("its coroutines give up in time", Outlook.WAKES, _gives_up),
    Row("a timer that was not read may end its wait", Outlook.UNSEEN, _timer_untold),
    Row("asks its pool again", Outlook.STANDS, outlook_asked.asks_pool_again, needs=Needs.WAITS),
    Row("another coroutine may feed it", Outlook.WAKES, lambda f: may_be_fed(f.one)),
    Row("a coroutine of it pauses", Outlook.WAKES, outlook_asked.coroutine_pauses, needs=Needs.ASKED),
    Row("its workers end in vain", Outlook.STANDS, _workers_in_vain),
    Row("its workers are replaced", Outlook.WAKES, _workers_replaced),
    Row("a script goes on", Outlook.WAKES, _script),
    Row("its children start and end", Outlook.WAKES, _children),
    Row("its threads start and end", Outlook.WAKES, outlook_inside.threads),
    Row("coroutines unread", Outlook.UNSEEN, _blind),
    Row("waits for a client", Outlook.UNSEEN, outlook_asked.listens, needs=Needs.ASKED),
    Row("waits for somebody, by its stack alone", Outlook.UNSEEN, _outward),
    Row("no Python, and sleeps", Outlook.WAKES, outlook_asked.foreign_sleeps, needs=Needs.ASKED),
    Row("waits for a signal that somebody may send", Outlook.WAKES, lambda f: may_get_signal(f.view, f.one)),
    Row("kept at it while the run hangs", Outlook.STANDS, outlook_naps.kept_at_it),
    Row("seen once only", Outlook.UNSEEN, _unread),
    Row("a call without a frame", Outlook.UNSEEN, outlook_asked.frameless, needs=Needs.ASKED),
    Row("asks whether anybody answers", Outlook.UNSEEN, asks_nobody_seen),
    Row("stands still", Outlook.STANDS, _frozen),
    Row("came to its wait lately", Outlook.WAKES, _came_lately),
    Row("works", Outlook.UNSEEN, _works),
    Row("polls for what nobody was seen to make", Outlook.UNSEEN, _polls),
    Row("a server that sleeps instead", Outlook.STANDS, outlook_asked.silent_server, needs=Needs.ASKED),
    Row("a part of an engine that sleeps", Outlook.UNSEEN, _engine_sleeps),
    Row("pauses", Outlook.WAKES, _pauses),
)
"""The last row always applies."""


@lru_cache(maxsize=1 << 12)
def _rows(kinds: frozenset[Kind], kind: Kind | None, *has: bool) -> tuple[Row, ...]:
    """The rows that may apply, by what the activity has, in the order of `Needs`, and by where its threads stand: for most these are few."""
    needs = Needs.NOTHING
    for need, is_so in zip(Needs, has, strict=True):
        needs |= need if is_so else Needs.NOTHING
    at = kinds if kind is None else kinds | {kind}
    return tuple(row for row in TABLE if row.needs in needs and (row.at is None or not row.at.isdisjoint(at)))


def activity_of(view: View, one: Seen, waits: Sequence[Edge], asked: Sequence[Edge], joined: Joined) -> Activity:
    """A process as the law sees it; `asked` are the edges of those that wait for it."""
    facts = facts_of(view, one, waits, joined, asked)
    has_coroutines, has_counters = bool(one.process.async_tasks), bool(joined.still or joined.advanced)
    has = (bool(waits), bool(asked), one.lane_of is not None, has_coroutines, bool(one.node.locks), has_counters)
    for row in _rows(one.kinds, one.kind, *has):
        reason = row.reason(facts)
        if reason is not None:
            return Activity(id=one.key, outlook=row.outlook, reason=reason, owner=one.key, certainty=row.certainty)
    raise AssertionError("the last row always applies")
