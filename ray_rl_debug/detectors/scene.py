"""What every rule sees, and the few questions that several rules ask of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from ray_rl_debug.analyze.coroutines import is_own, serves
from ray_rl_debug.analyze.engines import is_in_step
from ray_rl_debug.analyze.graph import Edge, Graph, Root
from ray_rl_debug.analyze.joined import Joined
from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.library_frames import is_library
from ray_rl_debug.analyze.nodes import NodeKind, kind_of, name_of, split
from ray_rl_debug.analyze.places import THREAD_WAITS, Kind
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.telling import LOOP_THREADS, SeenThread
from ray_rl_debug.analyze.view import SHELLS, View
from ray_rl_debug.analyze.worlds import World
from ray_rl_debug.report import Cause, Certainty, Evidence, Finding, Link, Who
from ray_rl_debug.snapshot import AsyncTask, RayActor, RayPlacementGroup, TaskHistory


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """View, solved graph and worlds."""

    view: View
    graph: Graph
    worlds: tuple[World, ...]
    joined: Joined = Joined()

    def process_roots(self) -> Iterator[tuple[Root, Seen]]:
        """Roots that are one collected process; also processes named by the user, for which nobody else has to wait."""
        for root in self.graph.roots:
            if not root.is_cycle and root.nodes[0] in self.view.seen:
                yield root, self.view.seen[root.nodes[0]]
        yield from self.lonely("named")

    def lonely(self, kind: str) -> Iterator[tuple[Root, Seen]]:
        """Processes of a kind that do something and neither wait for another process nor are waited for."""
        tied = {n for e in self.graph.edges for n in (e.source, e.target)}
        for one in self.view:
            if one.process.kind == kind and one.key not in tied and not one.is_idle:
                yield Root(nodes=(one.key,), waiters=(), is_cycle=False, chain=()), one

    def cycles(self) -> Iterator[tuple[Root, list[Seen], list[Edge]]]:
        """Roots that are cycles, with their members and the edges inside."""
        for root in self.graph.roots:
            if root.is_cycle:
                inside = set(root.nodes)
                edges = [e for e in self.graph.edges if e.source in inside and e.target in inside]
                yield root, [self.view.seen[n] for n in root.nodes if n in self.view.seen], edges

    def children_move(self, one: Seen) -> bool:
        """Do its child processes go on? It may well wait for them."""
        return any(child.motion is Motion.MOVING for child in self.view.children(one))

    def waiting_ranks(self, one: Seen) -> list[Seen]:
        """Ranks that wait for `one` in a collective, rendezvous or recv."""
        found = []
        for edge in self.graph.into([one.key]):
            waiter = self.view.seen.get(edge.source)
            if waiter is not None and waiter.kind in (Kind.COLLECTIVE, Kind.P2P, Kind.RENDEZVOUS, Kind.NEW_GROUP, Kind.DESTROY):
                found.append(waiter)
        return found

    def actor(self, node: str) -> RayActor | None:
        """The actor that a node of the graph is."""
        return self.view.actors.get(name_of(node)) if kind_of(node) is NodeKind.ACTOR else None

    def placement_group(self, node: str) -> RayPlacementGroup | None:
        """The placement group that a node of the graph is."""
        return self.view.placement_groups.get(name_of(node)) if kind_of(node) is NodeKind.PLACEMENT_GROUP else None

    def who(self, node: str) -> Who:
        """Anything in the graph as the report names it."""
        if node in self.view.seen:
            return self.view.seen[node].who()
        actor = self.actor(node)
        if actor is not None:
            return dead_actor_who(self.view, actor)
        group = self.placement_group(node)
        if group is not None:
            return Who(label=f"placement group {group.name or group.placement_group_id[:12]}")
        kind, name = kind_of(node), name_of(node)
        if kind is NodeKind.TASK:
            task = self.view.tasks.get(name)
            return Who(label=f"task {task.name if task else name[:16]}", task=task.name if task else None)
        if kind is NodeKind.RANK:
            key, rank = split(node)
            world = next((w for w in self.worlds if w.key == key), None)
            return Who(label=f"{world.name if world else 'rank'}/{rank}", world=world.name if world else None, rank=rank)
        if kind is NodeKind.PID:
            machine, pid = split(node)
            return Who(label=f"pid {pid}", node=machine, pid=pid)
        if kind is NodeKind.GONE:
            engine = next(e for e in self.view.engines if e.key == name)
            return Who(label=f"{engine.lost} of {self.view.seen[name].name}", node=engine.node, pid=engine.lost_pid, role="engine")
        return Who(label=name or node, node=name if kind is NodeKind.MACHINE else None)

    def link(self, edge: Edge) -> Link:
        return Link(waiter=self.who(edge.source), target=self.who(edge.target), why=edge.words, evidence=edge.evidence, certainty=edge.certainty)

    def age_s(self, one: Seen) -> float | None:
        """How long the process has been in its running Ray call; None when that is not known."""
        if self.view.ray is None or one.core is None:
            return None
        tasks = (self.view.tasks.get(t) for t in one.core.running_task_ids)
        starts = [t.state_times_s.get("RUNNING") for t in tasks if t is not None]
        known = [s for s in starts if s is not None]
        # both times are of the clock of the process's own node
        window_end_s = one.node.started_time_s + one.node.window_s
        return max(0.0, window_end_s - min(known)) if known else None

    def usual_s(self, one: Seen) -> float | None:
        """The longest finished call of the same name in this run, without those that stand apart; None when none has finished."""
        return max((h.longest_s if h.usual_s is None else h.usual_s for h in self._history(one)), default=None)

    def longest_s(self, one: Seen) -> float:
        """The longest finished call of the same name, also one that stands apart."""
        return max((h.longest_s for h in self._history(one)), default=0.0)

    def finished_calls(self, one: Seen) -> int:
        """How many calls of the same name this run has finished."""
        return sum(h.count for h in self._history(one))

    def _history(self, one: Seen) -> tuple[TaskHistory, ...]:
        if self.view.ray is None or one.core is None:
            return ()
        names = {self.view.tasks[t].name for t in one.core.running_task_ids if t in self.view.tasks}
        return tuple(h for h in self.view.ray.history if h.name in names)


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A rule's finding, and the nodes of the graph that it explains."""

    finding: Finding
    explains: frozenset[str]


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """May a process be called hung?"""

    certainty: Certainty | None
    """None: it moves, nothing may be said against it."""
    reason: str


USUAL_FACTOR = 3.0
"""A call is overdue when it takes this many times the longest of its name so far."""

OVERDUE_FLOOR_S = 5.0
"""and at least this long: calls of milliseconds vary by more than any factor."""

FROZEN_FLOOR_S = 2.5
"""The same for a call that stands at one line without a clock all the while."""

FAR_OVERDUE = 30.0
"""Calls that take this many times the longest need no more than the floor of frozen ones."""


ENOUGH_CALLS = 2
"""Finished calls that a working one is compared with: the first of all is often a warm-up."""


LONG_WINDOW_S = 15.0
"""A sleeper that is found at one line all through such a window does not only pause."""


ANSWER_S = 60.0
"""Language models and sandboxes answer in seconds to a minute."""

ANSWERS_FIT = 2.0
"""A call that is this many times as old as the quiet of its connection may have had such answers before,"""

OLD_CALL_S = 10.0
"""and at least this old: starting up takes its time too."""


def judge(scene: Scene, one: Seen) -> Judgement:
    """Hung, perhaps hung, or moving.

    Frozen in a call without a clock is likely hung, unless calls of this name are known to take that long. Busy or sleeping is likely hung only
    when the call is overdue against the run's own history; otherwise it is *possible*: a longer window tells.
    """
    if one.motion is Motion.MOVING:
        return Judgement(certainty=None, reason=one.motion_reason)
    if one.key in scene.joined.advanced:
        return Judgement(certainty=None, reason="it went on during the window")
    age, usual = scene.age_s(one), scene.usual_s(one)
    asleep = any(t is not None and t.place.timed for t in (one.telling, one.followed)) or (one.kind in THREAD_WAITS and naps(one))
    if any(is_in_step(one, e) for e in scene.view.engines):
        asleep = False  # an engine's step takes milliseconds and sleeps for nobody
    if age is not None and usual is not None:
        text = f"its call runs for {age:.0f} s; the longest of that name so far took {f'{usual:.1f} s' if usual >= 1 else f'{1000 * usual:.0f} ms'}"
        apart = scene.longest_s(one)
        if apart > usual:
            text += f", but for few that stand apart (up to {apart:.0f} s)"
        stands = one.motion is Motion.FROZEN and not asleep
        floor = FROZEN_FLOOR_S if stands or (age > FAR_OVERDUE * usual and not asleep) else OVERDUE_FLOOR_S
        if one.motion is Motion.BUSY and scene.finished_calls(one) < ENOUGH_CALLS:
            return Judgement(certainty=Certainty.POSSIBLE, reason=f"{text}, of {scene.finished_calls(one)}: too few to compare with one that works")
        if one.motion is Motion.BUSY and apart > usual and max(1.5 * usual, OVERDUE_FLOOR_S) < age <= USUAL_FACTOR * apart:
            return Judgement(certainty=Certainty.POSSIBLE, reason=f"{text}: too early to tell")
        if age > max(USUAL_FACTOR * usual, floor):
            return Judgement(certainty=Certainty.LIKELY, reason=text)
        if age <= 1.5 * usual:
            return Judgement(certainty=None, reason=f"{text}: not overdue")
        return Judgement(certainty=Certainty.POSSIBLE, reason=f"{text}: too early to tell")
    quiet = _quiet_s(one)
    if age is not None and quiet is not None and quiet < ANSWER_S and age > max(ANSWERS_FIT * quiet, OLD_CALL_S):
        text = f"its call runs for {age:.0f} s and this connection is quiet for {quiet:.0f} s: such answers may have come before"
        return Judgement(certainty=Certainty.POSSIBLE, reason=text)
    if one.telling is not None and any(f.function.endswith("Worker.put_object") for f in one.telling.frames):
        return Judgement(certainty=Certainty.POSSIBLE, reason="it puts an object into Ray's store: how far it is cannot be seen")
    if one.kind is Kind.CHILD and _script_goes_on(scene, one):
        return Judgement(certainty=Certainty.POSSIBLE, reason="the shell that it waits for woke up during the window: its script goes on")
    if one.kind is Kind.CHILD and _child_ended(scene, one):
        return Judgement(certainty=Certainty.POSSIBLE, reason="the child that it waits for began or ended during the window: others follow")
    if is_blind(one):
        return Judgement(certainty=Certainty.POSSIBLE, reason=f"{one.motion_reason}; its coroutines could not be read")
    window_s = one.process.window_s or 0.0
    asleep = asleep or (may_sleep(one) and not any(is_in_step(one, e) for e in scene.view.engines))
    if one.motion is Motion.FROZEN and (not asleep or window_s > LONG_WINDOW_S):
        return Judgement(certainty=Certainty.LIKELY, reason=one.motion_reason)
    return Judgement(certainty=Certainty.POSSIBLE, reason=f"{one.motion_reason}; no finished call of its kind to compare with")


def is_blind(one: Seen) -> bool:
    """Does it wait for coroutines that were not read? What they do is not known, and speaks against nobody."""
    waits = one.is_idle or (one.kind in THREAD_WAITS and one.place is not None and not one.place.on_loop)
    return one.process.async_tasks is None and waits and has_loop(one)


def has_loop(one: Seen) -> bool:
    """Does a thread of it run an event loop? Actors of Ray have one where their methods are coroutines."""
    return any((t.name or "").startswith(LOOP_THREADS) or t.place.kind is Kind.LOOP_IDLE for t in one.threads)


def may_sleep(one: Seen) -> bool:
    """Does it stand at a line of own code, and the kernel did not tell in which call? It may as well only pause there."""
    kernel = one.telling.kernel if one.telling is not None and one.kind is Kind.CODE else None
    return kernel is not None and kernel.state == "S" and kernel.syscall is None and kernel.wchan is None


def sleeps(one: Seen) -> bool:
    """Is it in a pause that ends by itself?"""
    thread = one.followed or one.telling
    if thread is None:
        return any(kernel_call(t) == "sleep" for t in one.process.threads[:1])
    return thread.place.timed or may_sleep(one)


def may_go_on(scene: Scene, one: Seen) -> str | None:
    """Why the process at the end of a wait may well go on although it stands still: its coroutines only sleep, or its children work."""
    if any(not is_own(t.chain[0]) for t in _napping(one)):  # begun by a server or by Ray: on the way to an answer, not a loop of its own
        return "coroutines of who should answer sleep for a time and go on by themselves"
    if one.is_idle and is_blind(one):
        return "the coroutines of who should answer could not be read"
    return "a child of who should answer is at work" if _works_below(scene, one) else None


def _works_below(scene: Scene, one: Seen) -> bool:
    return any(child.motion in (Motion.MOVING, Motion.BUSY) or _works_below(scene, child) for child in scene.view.children(one))


def naps(one: Seen) -> bool:
    """Does a coroutine of it, other than those that serve, sleep for no longer than answers take?"""
    return bool(_napping(one))


def _napping(one: Seen) -> list[AsyncTask]:
    asleep = [t for t in one.process.async_tasks or () if t.awaited is not None and t.awaited.kind == "sleep" and t.chain and not serves(t)]
    return [t for t in asleep if t.awaited is not None and t.awaited.delay_s is not None and t.awaited.delay_s < ANSWER_S]


def _quiet_s(one: Seen) -> float | None:
    """Since when nothing came in on the connection in which a process is blocked; None when it is in none, or that is not known."""
    kernel = one.telling.kernel if one.telling is not None and one.kind is Kind.SOCKET else None
    if kernel is None or kernel.syscall_arg0 is None:
        return None
    return next((s.quiet_s for s in one.process.sockets or () if s.fd == kernel.syscall_arg0), None)


def _script_goes_on(scene: Scene, one: Seen) -> bool:
    """A shell that waits for one program sleeps; one that starts the next wakes up."""
    children = (s.process for s in scene.view if s.node is one.node and s.process.ppid == one.process.pid and s.process.comm in SHELLS)
    return any(t.run_slices for child in children for t in child.threads)


def _child_ended(scene: Scene, one: Seen) -> bool:
    """One that runs program after program stands in the same wait at every look, each time for another child."""
    thread = one.followed or one.telling
    if thread is None or kernel_call(thread.kernel) != "wait" or thread.kernel is None:
        return False
    wanted = thread.kernel.syscall_arg0
    children = [s for s in scene.view if s.node is one.node and s.process.ppid == one.process.pid]
    if wanted in {s.process.pid for s in children}:
        children = [s for s in children if s.process.pid == wanted]
    return not children or any(s.age_s is not None and s.age_s < (one.process.window_s or 0.0) for s in children)


def weaker(a: Certainty, b: Certainty) -> Certainty:
    order = (Certainty.PROVEN, Certainty.LIKELY, Certainty.POSSIBLE)
    return order[max(order.index(a), order.index(b))]


def waits(count: int, what: str = "process") -> str:
    """``1 process waits``, ``3 processes wait``; ``2 ranks wait``."""
    return f"1 {what} waits" if count == 1 else f"{count} {what}{'es' if what.endswith('s') else 's'} wait"


_WRAPPERS = (
    "torch/distributed/c10d_logger.py",
    "ray/util/tracing/tracing_helper.py",
    "ray/_private/client_mode_hook.py",
    "ray/_private/auto_init_hook.py",
)


def stack_evidence(one: Seen, depth: int = 4, *, thread: SeenThread | None = None) -> Evidence:
    """The innermost frames of `thread`, else of the telling one, as evidence; without stacks the running method."""
    thread = thread or one.followed or one.telling
    if thread is None:
        return Evidence(kind="proc", where=one.where(), text=f"title says {one.identity.method or 'idle'}; no stack")
    own = thread.place.own or 0
    # What Ray and torch wrap around each call tells nothing: above the own code the call itself is named, below it only own code.
    call = [f for f in thread.frames[:own] if not f.file.endswith(_WRAPPERS)][-1:]
    frames = [*call, *(f for i, f in enumerate(thread.frames[own:]) if i == 0 or not is_library(f))][: depth + 1]
    text = " < ".join(f"{f.function} ({f.file.rsplit('/', 1)[-1]}{f':{f.line}' if f.line else ''})" for f in frames)
    return Evidence(kind="stack", where=f"{one.where()} thread {thread.name or thread.tid}", text=text)


def proc_evidence(one: Seen, text: str) -> Evidence:
    return Evidence(kind="proc", where=one.where(), text=text)


def waiter_evidence(waiters: Iterable[Seen]) -> tuple[Evidence, ...]:
    """One line for the waiting ranks, folded by what they wait in."""
    by_place: dict[str, list[Seen]] = {}
    for one in waiters:
        by_place.setdefault(one.at(), []).append(one)
    return tuple(
        Evidence(kind="stack", where=_few(o.identity.label for o in ones), text=text if len(ones) == 1 else ones[0].they())
        for text, ones in list(by_place.items())[:4]
    )


def _few(labels: Iterable[str]) -> str:
    """The first six, and how many more there are."""
    labels = sorted(labels, key=lambda label: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", label)])
    return ", ".join(labels[:6]) + (f" and {len(labels) - 6} more" if len(labels) > 6 else "")


def dead_actor_who(view: View, actor: RayActor) -> Who:
    node = next((n.name for n in view.snapshot.nodes if n.node_id == actor.node_id), None)
    if node is None and view.ray is not None:
        node = next((n.host for n in view.ray.nodes if n.node_id == actor.node_id), None)
    name = actor.class_name.rsplit(".", 1)[-1]
    return Who(label=actor.name or name, node=node, pid=actor.pid or None, actor=actor.name or None, class_=name)


def make_finding(
    rule_id: str,
    name: str,
    cause: Cause,
    certainty: Certainty,
    summary: str,
    *,
    who: Iterable[Who],
    evidence: Iterable[Evidence],
    remedy: Iterable[str],
    phase: str | None = None,
) -> Finding:
    """A finding; victims, root and chain are filled in by the verdict, from the graph."""
    return Finding(
        id=rule_id,
        name=name,
        cause=cause,
        certainty=certainty,
        summary=summary,
        phase=phase,
        who=tuple(who),
        evidence=tuple(evidence),
        remedy=tuple(remedy),
    )
