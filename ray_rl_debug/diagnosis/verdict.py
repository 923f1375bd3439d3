"""The report's answer in one state and one sentence. Silence is not health: what was not seen makes the answer *unknown*."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ray_rl_debug import signatures
from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.engines import may_hold_requests
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RAY, Kind
from ray_rl_debug.analyze.pauses import ANSWER_S, is_within, only_looks, wakes_soon
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.seen import Seen, as_verb, describe_place
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.analyze.waits_calls import works_inside
from ray_rl_debug.diagnosis.by_hand_verdict import verdict_by_hand
from ray_rl_debug.diagnosis.open_questions import (
    LONGER,
    LONGER_S,
    LONGEST,
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
from ray_rl_debug.model.log_story import LogStory
from ray_rl_debug.model.report import Cause, Certainty, Finding, State, Verdict
from ray_rl_debug.model.snapshot import Gap
from ray_rl_debug.rules.first_failure import ID as FIRST_FAILURE
from ray_rl_debug.rules.scene import Scene, judge
from ray_rl_debug.story.noted import SETTLES

_BLINDING = frozenset({gaps.STACKS_REFUSED, gaps.PYSPY_MISSING, gaps.NODE_SILENT, gaps.STACKS_FAILED})


def give_verdict(scene: Scene, findings: Sequence[Finding], all_gaps: Sequence[Gap], *, next_dump: str | None = None) -> Verdict:
    """State, sentence and next command from the findings, the motion of the processes and the gaps.

    Of stacks from files `next_dump` is the command of the first further look.
    """
    verdict = _verdict(scene, findings, all_gaps, next_dump)
    was_long = _window_s(scene.view.snapshot.options) >= LONGER_S
    return msgspec.structs.replace(verdict, next=LONGEST) if verdict.next == LONGER and was_long else verdict


def _window_s(options: Mapping[str, object]) -> float:
    samples, interval_s = options.get("samples"), options.get("interval_s")
    return (samples - 1) * interval_s if isinstance(samples, int) and isinstance(interval_s, float | int) else 0.0


def _verdict(scene: Scene, findings: Sequence[Finding], all_gaps: Sequence[Gap], next_dump: str | None) -> Verdict:
    if scene.story is not None and not scene.view.seen and all(e.kind == "log" for f in findings for e in f.evidence):
        return _of_story(scene.story, findings)
    if findings and not scene.view.seen and signatures.find(findings[0].id) is not None:
        summary = f"the logs hold a known error: {findings[0].summary}; they do not say whether the job still runs"
        return Verdict(state=State.UNKNOWN, summary=summary, certainty=findings[0].certainty, next=f"rayrl-debug explain {findings[0].id}")
    sure = [f for f in findings if f.certainty is not Certainty.POSSIBLE]
    silent = [g.where for g in all_gaps if g.id == gaps.NODE_SILENT]
    if sure:
        best = sure[0]
        more = f" (and {len(sure) - 1} more)" if len(sure) > 1 else ""
        if best.cause is Cause.ZERO_STEPS:
            return Verdict(state=State.FINISHED, summary=best.summary, certainty=best.certainty, next=f"rayrl-debug explain {best.id}")
        unseen = f"; not seen: {_names(silent)}" if silent else ""
        return Verdict(state=State.HANG, summary=best.summary + more + unseen, certainty=best.certainty, next=f"rayrl-debug explain {best.id}")
    if findings and not scene.view.seen and scene.view.snapshot.listed is not None:
        summary = f"{findings[0].summary}; the lists do not say since when"
        return Verdict(state=State.UNKNOWN, summary=summary, certainty=Certainty.POSSIBLE, next=next_dump or "ray status")
    counts_alone = bool(scene.joined.flight or scene.joined.ras) and not any(s.threads for s in scene.view)
    if scene.view.by_hand and scene.view.seen and not counts_alone:
        return verdict_by_hand(scene, findings, next_dump or LONGER)
    if findings and _only_pauses(scene, findings):
        summary = f"{_why_pauses(scene, findings[0])}: {findings[0].summary}"
        return Verdict(state=State.SLOW, summary=summary, certainty=Certainty.POSSIBLE, next=LONGER)
    if findings and (over := ended(scene)) is not None:
        first = findings[0]
        tells_it = any(e.where == over.where for e in first.evidence)
        summary = f"no verdict: {first.summary if tells_it else f'{over.reason}; {first.summary}'}. To settle it: {over.settles}"
        return Verdict(state=State.UNKNOWN, summary=summary, certainty=Certainty.POSSIBLE, next=over.next)
    if findings:
        told = why_open(scene)
        reason = f"{_names(silent)} did not answer, and may explain it" if silent else told.reason
        settles = f"look at {_names(silent)}" if silent else told.settles
        summary = f"slow or hung, {reason}: {findings[0].summary}. To settle it: {settles}"
        return Verdict(state=State.UNKNOWN, summary=summary, certainty=Certainty.POSSIBLE, next=told.next)
    return _without_findings(scene, all_gaps, next_dump)


def _only_pauses(scene: Scene, findings: Sequence[Finding]) -> bool:
    """Will everybody wake by itself for whom the others wait; or, where nobody is waited for, everybody who is suspected?"""
    if roots := _that_matter(scene):
        return all(r.hope is Outlook.WAKES or _is_left(scene, r) for r in roots)
    keys = [scene.view.by_node_pid.get((w.node, w.pid)) for f in findings for w in f.who if w.node is not None and w.pid is not None]
    return bool(keys) and all(key is not None and scene.graph.hope(key) is Outlook.WAKES for key in keys)


def _that_matter(scene: Scene) -> list[Root]:
    """All roots but idle workers: of those that take from one queue in turns one holds its lock, and the others wait for that one."""
    seen = scene.view.seen
    rest = (bool(r.waiters) and all(n in seen and seen[n].is_idle and not seen[n].is_stopped for n in r.nodes) for r in scene.graph.roots)
    return [r for r, rests in zip(scene.graph.roots, rest, strict=True) if not rests or _has_victims(scene, r)]


def _is_left(scene: Scene, root: Root) -> bool:
    """Will everybody who waits for it go on by itself, whatever becomes of it, or is in nobody's way?"""
    seen = scene.view.seen
    rests = (w in seen and _is_in_nobodys_way(scene, seen[w]) for w in root.waiters)
    return bool(root.waiters) and all(rest or scene.graph.hope(w) >= Outlook.WAKES for w, rest in zip(root.waiters, rests, strict=True))


def _why_pauses(scene: Scene, finding: Finding) -> str:
    if roots := _that_matter(scene):
        root = roots[0]
        node = root.nodes[0] if root.hope is Outlook.WAKES else root.waiters[0]
        return f"{scene.who(node).label} may go on by itself ({scene.graph.solution.activities[node].reason})"
    key = next(key for w in finding.who if (key := scene.view.by_node_pid.get((w.node or "", w.pid or 0))) is not None)
    return f"it may go on by itself ({scene.graph.solution.activities[key].reason})"


def _names(machines: Sequence[str]) -> str:
    more = f" and {len(machines) - 3} more" if len(machines) > 3 else ""
    return f"{', '.join(machines[:3])}{more}"


def _of_story(story: LogStory, findings: Sequence[Finding]) -> Verdict:
    """Of logs alone: they tell what failed first, not whether the job still runs."""
    if findings:
        what = f"explain {findings[0].id}"
        is_told = signatures.find(findings[0].id) is not None or findings[0].id == FIRST_FAILURE
        return Verdict(
            state=State.UNKNOWN,
            summary=f"{story.summary if is_told else findings[0].summary}; logs do not say whether the job still runs",
            certainty=findings[0].certainty,
            next=f"rayrl-debug {what}",
        )
    if story.still and not story.noted:
        best = next((s for s in story.still if s.is_likely), story.still[0])
        certainty = Certainty.LIKELY if best.is_likely else Certainty.POSSIBLE
        told = f"{best.text}: it is stuck, if the job still runs; take stacks of that server and of its engine processes"
        return Verdict(state=State.UNKNOWN, summary=told, certainty=certainty, next="rayrl-debug snapshot -o hang")
    settles = f"to settle it: {SETTLES}" if story.noted else "take stacks of the processes to see more"
    summary = f"{story.summary}; {settles}"
    return Verdict(state=State.UNKNOWN, summary=summary, certainty=Certainty.POSSIBLE, next="rayrl-debug snapshot -o hang")


def _go_on(seen: Sequence[Seen], moving: Sequence[Seen]) -> str:
    """``3 of 4 processes move``; who only used the processor was not seen to get anywhere."""
    motions = {one.motion for one in moving}
    verb = "move" if motions == {Motion.MOVING} else "work" if Motion.MOVING not in motions else "move or work"
    if len(seen) > 1:
        return f"{len(moving)} of {len(seen)} processes {verb}"
    return f"{seen[0].where()} {verb}s"


def _without_findings(scene: Scene, all_gaps: Sequence[Gap], next_dump: str | None) -> Verdict:
    if not scene.view.has_stacks and any(w.result.moving for w in scene.joined.flight):
        summary = "collectives went on between the Flight Recorder dumps of the ranks: nothing hangs, or the dumps were taken at different times"
        return Verdict(state=State.HEALTHY, summary=summary, certainty=Certainty.POSSIBLE, next=LONGER)
    seen = [s for s in scene.view if s.process.kind in ("ray-worker", "driver", "named", "child")]
    # a process that runs may wait in a loop: without stacks only finished calls are progress
    progress = (Motion.MOVING, Motion.BUSY) if scene.view.has_stacks else (Motion.MOVING,)
    moving = [s for s in seen if s.motion in progress]
    turning = {key for engine in scene.view.engines for key in may_hold_requests(scene.view.seen, engine)}
    awaited = [scene.view.seen[r.nodes[0]] for r in scene.graph.at_work if r.nodes[0] in scene.view.seen]
    # of a lane that may still go on the process itself is seen to move
    not_overdue = [one for one in awaited if one.motion is not Motion.MOVING and one.lane_of is None]
    if not_overdue:
        one = not_overdue[0]
        summary = f"others wait for {one.where()}, which {one.does()}; {judge(scene, one).reason}"
        return Verdict(state=State.SLOW, summary=summary, certainty=Certainty.LIKELY, next=LONGER)
    if not seen and any(n.log_lines for n in scene.view.snapshot.nodes) and scene.view.snapshot.options.get("imported"):
        summary = "the logs hold no error that explains a hang; take stacks of the processes to see more"
        return Verdict(state=State.UNKNOWN, summary=summary, certainty=Certainty.POSSIBLE, next="rayrl-debug snapshot -o hang")
    if not seen:
        return Verdict(state=State.UNKNOWN, summary="no process of a job was seen", certainty=Certainty.POSSIBLE, next="rayrl-debug snapshot --here")
    blind = [g for g in all_gaps if g.id in _BLINDING]
    standing = [s for s in seen if s.identity.method is not None and s.motion is Motion.UNKNOWN]
    sleeper = next((s for s in seen if s.kind is Kind.SLEEP and s.motion is Motion.FROZEN), None)
    restarted = next((r.nodes[0] for r in scene.graph.roots if r.hope is Outlook.WAKES and scene.actor(r.nodes[0]) is not None), None)
    if restarted is not None and all(r.hope is Outlook.WAKES for r in scene.graph.roots):
        reason = scene.graph.solution.activities[restarted].reason
        summary = f"others wait for {scene.who(restarted).label}, which may go on by itself: {reason}"
        return Verdict(state=State.SLOW, summary=summary, certainty=Certainty.POSSIBLE, next=LONGER)
    unseen = _unseen_end(scene)
    if unseen is not None:
        cure = next((g.remedy for g in blind if g.remedy), None)
        return Verdict(
            state=State.UNKNOWN,
            summary=f"no verdict: {unseen}. To settle it: {cure or 'look at its machine'}",
            certainty=Certainty.POSSIBLE,
            next=cure or LONGER,
        )
    if moving and sleeper is not None and all(s.is_idle and s.motion is Motion.MOVING for s in moving):
        asked = ", ".join(s.identity.label for s in moving[:3])
        idle = brought_so_far(scene, sleeper)
        if idle is not None:
            return _open(nobody_brings(sleeper, asked, idle))
        if asks_within(sleeper) and all(s is sleeper or (s.is_idle and not works_inside(s)) for s in seen):
            return _open(nobody_delivers(sleeper))
        lane = next((one for one in awaited if one.lane_of is not None), None)
        if lane is not None:
            summary = f"only short calls of {asked} finish, while others wait for {_call_of(lane)}: {scene.reason(lane)}"
            return Verdict(state=State.SLOW, summary=summary, certainty=Certainty.POSSIBLE, next=LONGER)
        summary = f"only short polls of {asked} finish; {sleeper.where()} {sleeper.does()} between them: if it waits for work, the job is stuck"
        return Verdict(state=State.HEALTHY, summary=summary, certainty=Certainty.POSSIBLE, next=LONGER)
    hangs = any(r.hope is Outlook.STANDS and _has_victims(scene, r) for r in scene.graph.roots)
    if all(s.key in turning for s in moving) and (unread := unread_requests(scene)) is not None:
        return _open(unread)
    at_gpu = at_unseen_gpu(scene)
    if at_gpu is not None:
        return _open(at_gpu)
    if moving and not hangs and (scene.view.has_stacks or not standing):
        summary = f"{_go_on(seen, moving)}, and no process waits for one that does not{_full_engines(scene)}"
        return Verdict(state=State.HEALTHY, summary=summary, certainty=Certainty.POSSIBLE if blind else Certainty.LIKELY, next=None)
    # A driver that waits for a result is no user who thinks, even where nobody seems to work on it.
    asks = any(s.process.kind == "driver" and (s.kind in WAITS_FOR_RAY or _pauses_in_step(s)) for s in seen)
    if not asks and all(s.is_idle for s in seen if s.process.kind != "driver") and not _has_work(scene):
        over = ended(scene) or awaits_loop(scene)
        if over is not None:
            return _open(over)
        summary = _all_idle(scene)
        return Verdict(state=State.HEALTHY, summary=summary, certainty=Certainty.POSSIBLE if blind else Certainty.LIKELY, next=None)
    timed = [s for s in seen if s.place is not None and s.place.timed]
    pauses = [*timed, *(s for s in seen if not s.is_idle and s not in timed and scene.graph.hope(s.key) is Outlook.WAKES)]
    if pauses and not blind and all(s.is_idle or s in pauses or _is_in_nobodys_way(scene, s) for s in seen):
        if all(only_looks(p) for p in pauses) and not _ended_lately(scene):
            return _open(nobody_delivers(pauses[0]))
        looks = "" if scene.graph.hope(pauses[0].key) is not Outlook.UNSEEN else ", but who should deliver what it looks for was not seen"
        goes_on = "and will wake by itself" if pauses[0] in timed else f"and may go on: {scene.reason(pauses[0])}"
        wakes = "again and again; if it waits for work, nobody does any" if only_looks(pauses[0]) else f"{goes_on}{looks}"
        summary = f"nothing works now: all others are idle, and {pauses[0].where()} {_pause(pauses[0])} {wakes}"
        return Verdict(state=State.SLOW, summary=summary, certainty=Certainty.POSSIBLE, next=LONGER)
    if scene.view.by_hand:
        return verdict_by_hand(scene, (), next_dump or LONGER)
    over = ended(scene)
    if over is not None:
        return _open(over)
    still = "others wait for what does not go on" if moving and hangs else "nothing moved during the window"
    reason = blind[0].reason if blind else f"{still}, and no rule explains why"
    reason += most_suspicious(scene)
    told = why_open(scene)
    cure = next((g.remedy for g in blind if g.remedy), None)
    summary = f"no verdict: {reason}. To settle it: {cure or told.settles}"
    return Verdict(state=State.UNKNOWN, summary=summary, certainty=Certainty.POSSIBLE, next=cure or told.next)


def _call_of(lane: Seen) -> str:
    """``all_alive of Monitor (node1 pid 5115)``"""
    return f"{lane.identity.method or 'another call'} of {lane.where()}"


def _has_victims(scene: Scene, root: Root) -> bool:
    """Does anybody wait for it who is not at rest? Idle workers of one pool wait for whoever of them reads the queue."""
    return any(w not in scene.view.seen or not scene.view.seen[w].is_idle for w in root.waiters)


def _open(told: Open) -> Verdict:
    summary = f"no verdict: {told.reason}. To settle it: {told.settles}"
    return Verdict(state=State.UNKNOWN, summary=summary, certainty=Certainty.POSSIBLE, next=told.next)


def _is_in_nobodys_way(scene: Scene, one: Seen) -> bool:
    """Does it wait for news of files, or does its clock wake it soon, and does nobody wait for it?"""
    thread = one.followed or one.telling
    wakes = thread is not None and thread.kernel is not None and wakes_soon(thread.kernel)
    return (wakes or any(e.why is Why.NEWS for e in scene.graph.out(one.key))) and not one.is_stopped and not scene.graph.into([one.key])


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


def _all_idle(scene: Scene) -> str:
    """Why nothing moves where nothing has anything to do."""
    if scene.view.engines and scene.view.ray is None:
        names = " and ".join(dict.fromkeys(scene.view.seen[e.key].where() for e in scene.view.engines[:3]))
        unread = [x for e in scene.view.engines for k in e.servers for x in scene.view.seen[k].process.sockets or () if x.tx_queue_bytes and x.remote]
        if unread:
            size = sum(x.tx_queue_bytes or 0 for x in unread) / 1e6
            behind = f"{len(unread)} of its clients {'has' if len(unread) == 1 else 'have'} not read {size:.1f} MB: look at {unread[0].remote}"
            return f"{names} has answered all requests and is idle, but {behind}"
        return f"{names} is idle: no request is in flight, and all its processes wait for work"
    if scene.view.ray is None:
        return "every process is idle: each waits for its next piece of work"
    at_rest = "every actor is idle and Ray has no unfinished task"
    limited = next((s for s in scene.view if s.process.kind == "driver" and _gives_up(s)), None)
    if limited is not None:
        return f"{at_rest}; {limited.where()} pauses in {limited.inside()} in a loop that ends by itself after a time"
    return f"{at_rest}: the job waits for its user, or has ended"


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
    return driver.kind is Kind.SLEEP and driver.place is not None and is_within(driver.place) and not _gives_up(driver)


def _gives_up(one: Seen) -> bool:
    """Does it pause in a loop that gives up after a time?"""
    return one.kind is Kind.SLEEP and one.telling is not None and any(f.gives_up for f in one.telling.frames[:1])


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
