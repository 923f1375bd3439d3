"""The answer where no rule names anybody: one ordered table. The first row that applies decides, and what no row explains is *unknown*."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from ray_rl_debug.analyze.clocks import wakes_soon
from ray_rl_debug.analyze.coroutines import SERVES_RANK, rank, serves
from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.engines import may_hold_requests
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RAY, Kind
from ray_rl_debug.analyze.nodes import NodeKind, kind_of
from ray_rl_debug.analyze.pauses import ANSWER_S, is_within, lacks_stack, only_looks
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.prompts import awaits_user
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.seen import Seen, as_verb, describe_place
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.analyze.waits_calls import works_inside
from ray_rl_debug.diagnosis.by_hand_verdict import verdict_by_hand
from ray_rl_debug.diagnosis.idle_runs import describe_idle, gives_up
from ray_rl_debug.diagnosis.open_questions import (
    LONGER,
    Open,
    asks_within,
    at_unseen_gpu,
    awaits_loop,
    brought_so_far,
    ended,
    most_suspicious,
    nobody_brings,
    nobody_delivers,
    unread_requests,
    why_open,
)
from ray_rl_debug.model import gaps
from ray_rl_debug.model.report import Certainty, State, Verdict
from ray_rl_debug.model.snapshot import Gap
from ray_rl_debug.rules.scene import Scene, judge

_BLINDING = frozenset({gaps.STACKS_REFUSED, gaps.PYSPY_MISSING, gaps.NODE_SILENT, gaps.STACKS_FAILED})
_JOBS_OWN = frozenset({"ray-worker", "driver", "named", "child"})


class Quiet:
    """What the rows look at: the processes of a job of which no rule accuses one."""

    def __init__(self, scene: Scene, all_gaps: Sequence[Gap], next_dump: str | None) -> None:
        self.scene, self.next_dump = scene, next_dump
        self.seen = [s for s in scene.view if s.process.kind in _JOBS_OWN]
        # a process that runs may wait in a loop: without stacks only finished calls are progress
        progress = (Motion.MOVING, Motion.BUSY) if scene.view.has_stacks else (Motion.MOVING,)
        self.moving = [s for s in self.seen if s.motion in progress]
        self.blind = [g for g in all_gaps if g.id in _BLINDING]

    @cached_property
    def awaited(self) -> list[Seen]:
        """Who goes on while others wait for it."""
        seen = self.scene.view.seen
        return [seen[r.nodes[0]] for r in self.scene.graph.at_work if r.nodes[0] in seen]

    @cached_property
    def hangs(self) -> bool:
        """Does somebody wait for what does not go on?"""
        return any(r.hope is Outlook.STANDS and has_victims(self.scene, r) for r in self.scene.graph.roots)

    @cached_property
    def cure(self) -> str | None:
        """The command that opens what could not be read."""
        return next((g.remedy for g in self.blind if g.remedy), None)

    @property
    def as_far_as_seen(self) -> Certainty:
        """How sure it is that all is well."""
        unread = any(lacks_stack(self.scene.view, s) and not s.has_ended for s in self.seen)
        tasks = (t for s in self.seen for t in s.process.async_tasks or ())
        in_part = any((t.stable is None or t.awaited is None) and not serves(t) for t in tasks)
        return Certainty.POSSIBLE if self.blind or unread or in_part else Certainty.LIKELY


def verdict_without_findings(scene: Scene, all_gaps: Sequence[Gap], next_dump: str | None) -> Verdict:
    """The first answer of the table that applies.

    Args:
        scene: The solved waits.
        all_gaps: What was not seen.
        next_dump: Of stacks from files, the command of the first further look.
    """
    quiet = Quiet(scene, all_gaps, next_dump)
    return next((verdict for row in _TABLE if (verdict := row(quiet)) is not None), None) or _unexplained(quiet)


def _counters_went_on(of: Quiet) -> Verdict | None:
    if of.scene.view.has_stacks or not any(w.result.moving for w in of.scene.joined.flight):
        return None
    summary = "collectives went on between the Flight Recorder dumps of the ranks: nothing hangs, or the dumps were taken at different times"
    return Verdict(state=State.HEALTHY, summary=summary, certainty=Certainty.POSSIBLE, next=LONGER)


def _is_not_overdue(of: Quiet) -> Verdict | None:
    # of a lane that may still go on the process itself is seen to move
    one = next((one for one in of.awaited if one.motion is not Motion.MOVING and one.lane_of is None), None)
    if one is None:
        return None
    summary = f"others wait for {one.where()}, which {one.does()}; {judge(of.scene, one).reason}"
    return Verdict(state=State.SLOW, summary=summary, certainty=Certainty.LIKELY, next=LONGER)


def _nobody_was_seen(of: Quiet) -> Verdict | None:
    if of.seen:
        return None
    snapshot = of.scene.view.snapshot
    if any(n.log_lines for n in snapshot.nodes) and snapshot.options.get("imported"):
        summary = "the logs hold no error that explains a hang; take stacks of the processes to see more"
        return Verdict(state=State.UNKNOWN, summary=summary, certainty=Certainty.POSSIBLE, next="rayrl-debug snapshot -o hang")
    return Verdict(state=State.UNKNOWN, summary="no process of a job was seen", certainty=Certainty.POSSIBLE, next="rayrl-debug snapshot --here")


def _restarts(of: Quiet) -> Verdict | None:
    scene, roots = of.scene, of.scene.graph.roots
    restarted = next((r.nodes[0] for r in roots if r.hope is Outlook.WAKES and scene.actor(r.nodes[0]) is not None), None)
    if restarted is None or any(r.hope is not Outlook.WAKES for r in roots):
        return None
    reason = scene.graph.solution.activities[restarted].reason
    summary = f"others wait for {scene.who(restarted).label}, which may go on by itself: {reason}"
    return Verdict(state=State.SLOW, summary=summary, certainty=Certainty.POSSIBLE, next=LONGER)


def _awaits_unseen_actor(of: Quiet) -> Verdict | None:
    unseen = _unseen_end(of.scene)
    if unseen is None:
        return None
    summary = f"no verdict: {unseen}. To settle it: {of.cure or 'look at its machine'}"
    return Verdict(state=State.UNKNOWN, summary=summary, certainty=Certainty.POSSIBLE, next=of.cure or LONGER)


def _only_polls_finish(of: Quiet) -> Verdict | None:
    sleeper = next((s for s in of.seen if s.kind is Kind.SLEEP and s.motion is Motion.FROZEN), None)
    if not of.moving or sleeper is None or not all(s.is_idle and s.motion is Motion.MOVING for s in of.moving):
        return None
    asked = ", ".join(s.identity.label for s in of.moving[:3])
    idle = brought_so_far(of.scene, sleeper)
    if idle is not None:
        return open_verdict(nobody_brings(sleeper, asked, idle))
    if asks_within(sleeper) and all(s is sleeper or (s.is_idle and not works_inside(s)) for s in of.seen):
        return open_verdict(nobody_delivers(sleeper))
    lane = next((one for one in of.awaited if one.lane_of is not None), None)
    if lane is not None:
        summary = f"only short calls of {asked} finish, while others wait for {_call_of(lane)}: {of.scene.reason(lane)}"
        return Verdict(state=State.SLOW, summary=summary, certainty=Certainty.POSSIBLE, next=LONGER)
    summary = f"only short polls of {asked} finish; {sleeper.where()} {sleeper.does()} between them: if it waits for work, the job is stuck"
    return Verdict(state=State.HEALTHY, summary=summary, certainty=Certainty.POSSIBLE, next=LONGER)


def _requests_unread(of: Quiet) -> Verdict | None:
    turning = {key for engine in of.scene.view.engines for key in may_hold_requests(of.scene.view.seen, engine)}
    unread = unread_requests(of.scene) if all(s.key in turning for s in of.moving) else None
    return open_verdict(unread) if unread is not None else None


def _at_unseen_gpu(of: Quiet) -> Verdict | None:
    told = at_unseen_gpu(of.scene)
    return open_verdict(told) if told is not None else None


def _goes_on(of: Quiet) -> Verdict | None:
    standing = any(s.identity.method is not None and s.motion is Motion.UNKNOWN for s in of.seen)
    if not of.moving or of.hangs or (standing and not of.scene.view.has_stacks):
        return None
    summary = f"{_who_goes_on(of)}, and no process waits for one that does not{_full_engines(of.scene)}"
    return Verdict(state=State.HEALTHY, summary=summary, certainty=of.as_far_as_seen, next=None)


def _is_idle(of: Quiet) -> Verdict | None:
    # a driver that waits for a result is no user who thinks, even where nobody seems to work on it; nor is who awaits one of somebody unseen
    asks = any(s.process.kind == "driver" and (s.kind in WAITS_FOR_RAY or _pauses_in_step(s) or _stands_outside(s)) for s in of.seen)
    if asks or _awaits_somebody_unseen(of.scene) or not all(s.is_idle for s in of.seen if s.process.kind != "driver") or _has_work(of.scene):
        return None
    over = ended(of.scene) or awaits_loop(of.scene)
    if over is not None:
        return open_verdict(over)
    return Verdict(state=State.HEALTHY, summary=describe_idle(of.scene.view), certainty=of.as_far_as_seen, next=None)


def _pauses(of: Quiet) -> Verdict | None:
    scene = of.scene
    timed = [s for s in of.seen if s.place is not None and s.place.timed]
    pauses = [*timed, *(s for s in of.seen if not s.is_idle and s not in timed and scene.graph.hope(s.key) is Outlook.WAKES)]
    if not pauses or of.blind or not all(s.is_idle or s in pauses or is_in_nobodys_way(scene, s) for s in of.seen):
        return None
    if all(only_looks(p) for p in pauses) and not _ended_lately(scene):
        return open_verdict(nobody_delivers(pauses[0]))
    looks = "" if scene.graph.hope(pauses[0].key) is not Outlook.UNSEEN else ", but who should deliver what it looks for was not seen"
    goes_on = "and will wake by itself" if pauses[0] in timed else f"and may go on: {scene.reason(pauses[0])}"
    wakes = "again and again; if it waits for work, nobody does any" if only_looks(pauses[0]) else f"{goes_on}{looks}"
    summary = f"nothing works now: all others are idle, and {pauses[0].where()} {_pause(pauses[0])} {wakes}"
    return Verdict(state=State.SLOW, summary=summary, certainty=Certainty.POSSIBLE, next=LONGER)


def _by_hand(of: Quiet) -> Verdict | None:
    return verdict_by_hand(of.scene, (), of.next_dump or LONGER) if of.scene.view.by_hand else None


def _has_ended(of: Quiet) -> Verdict | None:
    over = ended(of.scene)
    return open_verdict(over) if over is not None else None


def _unexplained(of: Quiet) -> Verdict:
    still = "others wait for what does not go on" if of.moving and of.hangs else "nothing moved during the window"
    reason = of.blind[0].reason if of.blind else f"{still}, and no rule explains why"
    reason += most_suspicious(of.scene)
    told = why_open(of.scene)
    summary = f"no verdict: {reason}. To settle it: {of.cure or told.settles}"
    return Verdict(state=State.UNKNOWN, summary=summary, certainty=Certainty.POSSIBLE, next=of.cure or told.next)


_TABLE: tuple[Callable[[Quiet], Verdict | None], ...] = (
    _counters_went_on,
    _is_not_overdue,
    _nobody_was_seen,
    _restarts,
    _awaits_unseen_actor,
    _only_polls_finish,
    _requests_unread,
    _at_unseen_gpu,
    _goes_on,
    _is_idle,
    _pauses,
    _by_hand,
    _has_ended,
)


def open_verdict(told: Open) -> Verdict:
    """*Unknown*: why, what would settle it, and the command for that."""
    summary = f"no verdict: {told.reason}. To settle it: {told.settles}"
    return Verdict(state=State.UNKNOWN, summary=summary, certainty=Certainty.POSSIBLE, next=told.next)


def has_victims(scene: Scene, root: Root) -> bool:
    """Does anybody wait for it who is not at rest? Idle workers of one pool wait for whoever of them reads the queue."""
    return any(w not in scene.view.seen or not scene.view.seen[w].is_idle for w in root.waiters)


def is_in_nobodys_way(scene: Scene, one: Seen) -> bool:
    """Does it wait for news of files, or does its clock wake it soon, and does nobody wait for it?"""
    thread = one.followed or one.telling
    wakes = thread is not None and thread.kernel is not None and wakes_soon(thread.kernel)
    return (wakes or any(e.why is Why.NEWS for e in scene.graph.out(one.key))) and not one.is_stopped and not scene.graph.into([one.key])


def _who_goes_on(of: Quiet) -> str:
    """``3 of 4 processes move``; who only used the processor was not seen to get anywhere."""
    motions = {one.motion for one in of.moving}
    verb = "move" if motions == {Motion.MOVING} else "work" if Motion.MOVING not in motions else "move or work"
    if len(of.seen) > 1:
        return f"{len(of.moving)} of {len(of.seen)} processes {verb}"
    return f"{of.seen[0].where()} {verb}s"


def _call_of(lane: Seen) -> str:
    """``all_alive of Monitor (node1 pid 5115)``"""
    return f"{lane.identity.method or 'another call'} of {lane.where()}"


def _pause(one: Seen) -> str:
    """What it does, and which of its threads it waits for where that is the one that pauses."""
    thread = one.followed
    if thread is None or (one.place is not None and one.place.timed):
        return one.does()
    return f"{one.does()}; its thread {thread.called} {as_verb(describe_place(thread.place))}"


_FULL = 0.95
"""Part of an engine's cache in use from which on requests have to wait for room."""


def _full_engines(scene: Scene) -> str:
    """Engines that move but make requests wait, with their own figures."""
    told = []
    for one in (scene.view.seen[k] for e in scene.view.engines for k in e.servers):
        state = one.process.engine
        if state is not None and state.waiting and (state.kv_usage or 0.0) >= _FULL:
            told.append(
                f"; {one.where()} is full: {state.running or 0} requests run, {state.waiting} wait, its cache is used to {state.kv_usage:.0%}"
            )
    return "".join(told)


def _unseen_end(scene: Scene) -> str | None:
    """Who stands still and waits for an actor that lives, but whose process is not in the snapshot."""
    for root in scene.graph.roots:
        actor = scene.actor(root.nodes[0])
        waiters = [scene.view.seen[w] for w in root.waiters if w in scene.view.seen]
        still = next((w for w in waiters if w.motion is Motion.FROZEN), None)
        if actor is not None and actor.state == "ALIVE" and still is not None:
            return f"{still.where()} waits for {scene.who(root.nodes[0]).label}, whose process was not seen"
    return None


def _pauses_in_step(driver: Seen) -> bool:
    """Does it sleep in a function that its program calls? Who waits for a user sleeps in the outermost one, or until a time is over."""
    return driver.kind is Kind.SLEEP and driver.place is not None and is_within(driver.place) and not gives_up(driver)


def _stands_outside(driver: Seen) -> bool:
    """Does it stand at a file, a lock of one or a connection? Its program goes on when that does, whoever types meanwhile."""
    return driver.motion is Motion.FROZEN and driver.kind in (Kind.FILE, Kind.FLOCK, Kind.SOCKET, Kind.CHANNEL) and not awaits_user(driver)


def _awaits_somebody_unseen(scene: Scene) -> bool:
    """Do coroutines of own code stand still in a process that waits for somebody who was not seen?"""
    waiters = (scene.view.seen.get(w) for r in scene.graph.roots if kind_of(r.nodes[0]) is NodeKind.UNSEEN for w in r.waiters)
    return any(e.is_still and rank(e) < SERVES_RANK for one in waiters if one is not None for e in one.ends)


def _ended_lately(scene: Scene) -> bool:
    """Has a call of Ray ended within the time that answers take? Who looks again and again may well pause before the next one."""
    ray, taken_s = scene.view.ray, scene.view.snapshot.taken_time_s
    return ray is not None and any(h.last_end_time_s is not None and taken_s - h.last_end_time_s < ANSWER_S for h in ray.history)


def _has_work(scene: Scene) -> bool:
    ray = scene.view.ray
    if ray is None:
        return False
    if any(g.state == "PENDING" for g in ray.placement_groups) or any(a.state == "PENDING_CREATION" for a in ray.actors):
        return True
    return any(w.running_task_ids for w in ray.core_workers if w.kind != "DRIVER")
