"""RRD104 cleanup deadlock

Story
    Some ranks met an error or an early end and are shutting down (destroying groups, joining threads, a last
    barrier), the others still wait for them in the training loop.

Evidence
    Cleanup frames on some ranks, collectives under training frames on the others.

Remedy
    Find the swallowed exception in the log of the leaving rank.

Not this when
    All ranks are in cleanup and move on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.phase import is_leaving
from ray_rl_debug.analyze.places import Place
from ray_rl_debug.analyze.seen import Seen, as_verb, describe_place
from ray_rl_debug.analyze.waits_ranks import is_waiting
from ray_rl_debug.model.report import Cause, Certainty, Finding
from ray_rl_debug.rules.scene import Found, Scene, make_finding, proc_evidence, stack_evidence, waiter_evidence

ID = "RRD104"
NAME = "cleanup deadlock"
CAUSE = Cause.CLEANUP_DEADLOCK


def detect(scene: Scene) -> Iterator[Found]:
    """Roots on their way out that other ranks wait for, and worlds where some ranks leave while others still train."""
    for root, one in scene.process_roots():
        waiters = scene.waiting_ranks(one)
        if scene.view.by_hand and not waiters and _exits(one):
            yield Found(finding=_alone(scene, one), explains=frozenset(root.nodes))
        elif scene.view.by_hand and not waiters and _ends_object(one):
            yield Found(finding=_in_destructor(scene, one), explains=frozenset(root.nodes))
        elif scene.view.by_hand and not waiters and (ending := _thread_that_destroys(one)) is not None:
            yield Found(finding=_ends_group(scene, one, ending), explains=frozenset(root.nodes))
        if not waiters or one.is_stopped or not (_destroys(one) or _leaves_alone(one, waiters)):
            continue
        yield Found(finding=_finding([one], waiters, Certainty.LIKELY, scene.reason(one)), explains=frozenset(root.nodes))
    for root, members, _ in scene.cycles():
        ranks = [m for m in members if is_waiting(m)]
        places = {id(m.place): m.place for m in ranks}  # one for all that stand there
        leaving = {at for at, place in places.items() if _leaves(place)}
        out = [m for m in ranks if id(m.place) in leaving] if leaving else []
        if out and len(out) < len(ranks):
            rest = [m for m in ranks if id(m.place) not in leaving]
            yield Found(finding=_finding(out, rest, Certainty.LIKELY, "they wait in different calls"), explains=frozenset(root.nodes))


def _leaves(place: Place | None) -> bool:
    return place is not None and (place.kind is Kind.DESTROY or is_leaving(f for f, _, _ in place.path))


def _leaves_alone(one: Seen, waiters: Sequence[Seen]) -> bool:
    """Is it on its way out in a function in which not all of those are that wait for it? All in one "finalize" do one thing together."""
    if one.place is None or not is_leaving(f for f, _, _ in one.place.path):
        return False
    shared = set.intersection(*({(f, file) for f, file, _ in w.place.path} if w.place is not None else set() for w in waiters))
    return is_leaving(f for f, file, _ in one.place.path if (f, file) not in shared)


def _destroys(one: Seen) -> bool:
    return one.place is not None and one.place.kind is Kind.DESTROY


def _thread_that_destroys(one: Seen) -> SeenThread | None:
    """The thread that gives up a communicator, be it one of the program or of torch."""
    return next((t for t in one.threads if t.place.kind is Kind.DESTROY), None)


_EXITS = frozenset({"_python_exit", "_exit_function", "_run_exitfuncs", "_run_finalizers"})
_EXITS_IN_C = frozenset({"Py_FinalizeEx", "Py_Finalize", "finalize_modules", "__run_exit_handlers", "_PyGC_CollectNoFail"})


def _exits(one: Seen) -> bool:
    """Does it run what Python runs when a program ends?"""
    frames = one.telling.frames if one.telling is not None else ()
    names = [(short_name(f.function), f.file) for f in frames]
    if any(n in _EXITS_IN_C for n, _ in names):
        return True
    return any(n in _EXITS or (n == "_shutdown" and file.endswith("threading.py")) for n, file in names)


_ENDS_OF_OTHERS = frozenset({Kind.JOIN, Kind.CHILD, Kind.MP_QUEUE, Kind.EVENT})
_ENDS = re.compile(r"(?:^|_)(?:join|wait|shutdown|stop|terminate|finish|flush)(?:_|$)")
"""Functions of a library, written in C perhaps, that return when somebody else has ended."""


def _ends_object(one: Seen) -> bool:
    """Does it wait for a thread or a child in what Python runs when an object is given up?"""
    frames = one.telling.frames if one.telling is not None else ()
    names = [short_name(f.function) for f in frames]
    waits = one.kind in _ENDS_OF_OTHERS or (one.kind is Kind.CODE and bool(names) and _ENDS.search(names[0]) is not None)
    return waits and "__del__" in names[1:]


def _in_destructor(scene: Scene, one: Seen) -> Finding:
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.POSSIBLE,
        f"{one.where()} {one.does()}, in the __del__ of an object: the program goes on only when that returns",
        who=[one.who()],
        evidence=[stack_evidence(one), proc_evidence(one, scene.reason(one))],
        remedy=[
            "see its other threads and its children: the one that should end needs this thread, or is gone",
            "close pools and clients at a known place (with ...), and wait for nobody in __del__",
        ],
        phase="cleanup",
    )


def _alone(scene: Scene, one: Seen) -> Finding:
    """Of files: a program at its end that waits for a thread or a child of its own."""
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.POSSIBLE,
        f"{one.where()} has come to its end and {one.does()}: it cannot exit before that",
        who=[one.who()],
        evidence=[stack_evidence(one), proc_evidence(one, scene.reason(one))],
        remedy=[
            "see its other threads and its children: one of them does not end",
            "shut pools down before the end of the program (with ... as pool), and make helper threads daemons",
        ],
        phase="cleanup",
    )


def _ends_group(scene: Scene, one: Seen, ending: SeenThread) -> Finding:
    """Of files: a process that gives up a communicator, and does not come back from it."""
    main = one.telling if one.telling is not ending else None
    meanwhile = f"; its thread {main.called} {as_verb(describe_place(main.place))}" if main is not None else ""
    return make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.POSSIBLE,
        f"{one.where()} gives up a communicator in {ending.place.op}, which does not return{meanwhile}",
        who=[one.who()],
        evidence=[
            stack_evidence(one, thread=ending),
            *([stack_evidence(one, thread=main)] if main is not None else []),
            proc_evidence(one, scene.reason(one)),
        ],
        remedy=[
            "look for what made it give up: a time-out or an exception in the log of this rank or of another",
            "it waits for work on the GPU that never ends: a collective in which another rank did not come, or a lock that another thread has",
        ],
        phase="cleanup",
    )


def _finding(out: list[Seen], waiters: list[Seen], certainty: Certainty, reason: str) -> Finding:
    names = ", ".join(o.identity.label for o in out[:4])
    return make_finding(
        ID,
        NAME,
        CAUSE,
        certainty,
        f"{names} {'is' if len(out) == 1 else 'are'} shutting down ({out[0].at()}) while other ranks still wait",
        who=[o.who() for o in out],
        evidence=[*(stack_evidence(o) for o in out[:3]), *waiter_evidence(waiters), proc_evidence(out[0], reason)],
        remedy=[
            "look in this rank's log for the exception that cleanup code swallowed (try/except or finally around the step)",
            "stop all ranks together: let the exception end the process instead of destroying the group, or abort the group",
        ],
        phase=out[0].phase,
    )
