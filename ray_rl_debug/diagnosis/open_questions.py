"""Why an answer is open, and what would settle it: somebody was not seen, something was not read, or the window was too short."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from ray_rl_debug.analyze.coroutines import line_of, own_frame, serves
from ray_rl_debug.analyze.deaths import how_ended
from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.looks import looks_at
from ray_rl_debug.analyze.pauses import is_within
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.analyze.unread_coroutines import may_have_requests
from ray_rl_debug.analyze.waits_calls import works_inside
from ray_rl_debug.analyze.waits_children import INSIDE
from ray_rl_debug.analyze.waits_launchers import OTHER_NODES
from ray_rl_debug.analyze.waits_poll import ASKS
from ray_rl_debug.model.snapshot import AsyncTask
from ray_rl_debug.rules.scene import Scene
from ray_rl_debug.signatures import find

LONGER_SAMPLES, LONGER_INTERVAL_S = 5, 5.0
LONGER = f"rayrl-debug snapshot --samples {LONGER_SAMPLES} --interval {LONGER_INTERVAL_S:g}"
"""A longer look than the usual one."""
LONGER_S = (LONGER_SAMPLES - 1) * LONGER_INTERVAL_S
LONGEST = f"rayrl-debug snapshot --samples {LONGER_SAMPLES} --interval {3 * LONGER_INTERVAL_S:g}"
"""The next after that one."""
_TELLS = ("critical", "cascade")
"""Effects of known errors that say something of an end."""
_READ_MORE = "rayrl-debug doctor"
"""It says what may not be read on each node, and what to do about it."""


class Open(NamedTuple):
    reason: str
    """Why nobody can tell yet."""
    settles: str
    """What would settle it."""
    next: str
    """The command for that."""
    where: str | None = None
    """The process whose end it is, as evidence names it."""


def why_open(scene: Scene) -> Open:
    """Of the first root that does not simply stand: those that were not seen before those that were not read, the window last."""
    unseen = [r for r in scene.graph.roots if r.hope is Outlook.UNSEEN]
    for root in unseen:
        if root.nodes[0] not in scene.view.seen:
            label = scene.who(root.nodes[0]).label
            if label.startswith(INSIDE):
                return Open(f"{label} was not seen", "a longer window looks at it again", LONGER)
            where = "see on each node whether its launcher runs" if root.nodes[0] == OTHER_NODES else "look at all processes of its machine, as root"
            return Open(f"{label} was not seen", where, _READ_MORE)
    for root in unseen:
        one = scene.view.seen[root.nodes[0]]
        if not one.threads:
            return Open(f"no stack of {one.where()} was read", "a longer window shows whether it ends; strace or its log shows what it does", LONGER)
        if any(t.kernel is None for t in (one.followed or one.telling,) if t is not None) and one.process.threads == ():
            return Open(f"in which call {one.where()} is was not read", "read /proc as root", _READ_MORE)
    if not unseen and any(r.hope is Outlook.STANDS for r in scene.graph.roots):
        return Open("some facts leave another answer open", "a longer window, and what is listed as not seen", LONGER)
    return Open("the window is too short to tell", "a longer window shows whether it goes on", LONGER)


def unread_requests(scene: Scene) -> Open | None:
    """The first server of which nobody knows whether a request is in flight."""
    one = next((s for s in scene.view if may_have_requests(scene.view, s)), None)
    if one is None:
        return None
    reason = f"whether a request of {one.where()} is in flight is not known: it holds connections, and its coroutines were not read"
    return Open(reason, "look again; what is listed as not seen says why they were not read", LONGER)


def awaits_loop(scene: Scene) -> Open | None:
    """Somebody whose coroutine awaits the end of others, all of which pause in a loop that nothing ends. Not a service, which does so by design."""
    for one in scene.view:
        tasks = {t.address: t for t in one.process.async_tasks or ()}
        if one.is_stopped or any(s.state == "LISTEN" for s in one.process.sockets or ()):
            continue
        for task in tasks.values():
            own, awaited = own_frame(task), task.awaited
            if own is None or awaited is None or awaited.kind not in ("task", "gather") or not awaited.tasks or serves(task):
                continue
            inner = [tasks.get(address) for address in awaited.tasks]
            if all(t is not None and _goes_round(t) for t in inner):
                said = ", ".join(line_of(t) for t in inner[:3] if t is not None)
                left = f"of these only {said} is left, in a loop that nothing ends"
                reason = f"{one.where()} awaits the end of coroutines at {line_of(task)}, and {left}"
                return Open(reason, "see whether it should have been cancelled: if the program waits for that end, it never comes", LONGER)
    return None


def _goes_round(task: AsyncTask) -> bool:
    own = own_frame(task)
    return own is not None and own.goes_round is True and task.awaited is not None and task.awaited.kind == "sleep"


def asks_within(one: Seen) -> bool:
    """Does it ask an actor again and again in a step of its program? Who does so in its outermost loop may well have nothing to do."""
    return one.telling is not None and ASKS in (looks_at(one.telling) or ()) and is_within(one.telling.place)


def nobody_delivers(one: Seen) -> Open:
    """One that looks for something again and again while nobody works."""
    reason = f"nothing works, and {one.where()} looks again and again: it {one.does()}. Nobody was seen who would deliver what it looks for"
    return Open(reason, "a longer window shows whether that comes; the condition of this loop says who should bring it", LONGER)


def brought_so_far(scene: Scene, poller: Seen) -> Seen | None:
    """Who brought so far what a poller asks for, as Ray's history tells, and does nothing now: no call, no thread, no coroutine of its own."""
    found = [scene.view.seen[e.target] for e in scene.graph.out(poller.key) if e.why is Why.POLL and e.target in scene.view.seen]
    idle = [
        one
        for one in found
        if one.is_idle and not one.is_at_work and not works_inside(one) and not (one.core is not None and one.core.running_task_ids)
    ]
    return idle[0] if idle and len(idle) == len(found) else None


def nobody_brings(poller: Seen, asked: str, idle: Seen) -> Open:
    """One that asks an actor again and again, while whoever fed that actor does nothing any more."""
    reason = f"{poller.where()} asks {asked} again and again and {poller.does()} in between; {idle.where()}, which brought more so far, is idle"
    return Open(reason, f"a longer window shows whether that goes on; look why {idle.name} does nothing", LONGER)


def ended(scene: Scene) -> Open | None:
    """The first process that was asked for and has ended: only its log can tell more."""
    one = next((s for s in scene.view if s.has_ended and s.process.kind == "named"), None)
    if one is None:
        return None
    reason, settles = f"{one.where()} has ended{how_ended(one.process.exit_code)}", "its log says why"
    line = next((x for x in reversed(one.process.log_lines) if (known := find(x.signature)) is not None and known.effect in _TELLS), None)
    if line is None:
        return Open(reason, settles, "rayrl-debug report LOG", one.where())
    said = f"{reason}; {line.file}:{line.line_number} says: {line.text.rstrip('.')}"
    return Open(said, settles, f"rayrl-debug report {shlex.quote(line.file)}", one.where())


def at_unseen_gpu(scene: Scene) -> Open | None:
    """Processes that wait for their GPU, where nobody measured what that does: it may compute, or wait for other ranks for ever."""
    waiting = [s for s in scene.view if s.kind in (Kind.CUDA, Kind.CODE) and s.motion is Motion.UNKNOWN and not s.has_ended and len(s.places) > 1]
    if not waiting:
        return None
    one = waiting[0]
    reason = f"{one.where()} {one.does()} all the time: it {one.motion_reason}{f'; so do {len(waiting) - 1} more' if len(waiting) > 1 else ''}"
    return Open(reason, "a longer window, in which its frames of C are read too; nvidia-smi shows whether its GPU works", LONGER)


def most_suspicious(scene: Scene) -> str:
    """Where to look first, as a sentence; empty where nobody stands: a root that no rule claims, its waiters, else whoever is not idle."""
    keys = [r.nodes[0] for r in scene.graph.roots if r.hope is Outlook.STANDS and r.nodes[0] in scene.view.seen]
    keys += [s.key for s in scene.view if not s.is_idle and scene.graph.hope(s.key) is Outlook.STANDS and not scene.graph.out(s.key)]
    keys += [s.key for s in scene.view if not s.is_idle and scene.graph.hope(s.key) is Outlook.UNSEEN and not scene.graph.out(s.key)]
    if keys:
        one = scene.view.seen[keys[0]]
        if one.has_ended:
            return f". Look first at {one.where()}: {scene.graph.solution.activities[one.key].reason}"
        return f". Look first at {one.where()}: it {one.does()}, {scene.graph.solution.activities[one.key].reason}"
    waiting = [(w, root) for root in scene.graph.roots for w in root.waiters if w in scene.view.seen]
    return _waiter(scene, *waiting[0]) if waiting else ""


def _waiter(scene: Scene, key: str, root: Root) -> str:
    one = scene.view.seen[key]
    return f". Look first at {one.where()}: it {one.does()}, and waits for {scene.who(root.nodes[0]).label}"
