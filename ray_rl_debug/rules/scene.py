"""What every rule sees, and the few questions that several rules ask of it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest
from itertools import islice

import msgspec

from ray_rl_debug.analyze.await_chains import is_own
from ray_rl_debug.analyze.by_hand import is_stacks_alone
from ray_rl_debug.analyze.call_ages import call_age
from ray_rl_debug.analyze.edges import Edge
from ray_rl_debug.analyze.ended import ended
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RANKS
from ray_rl_debug.analyze.library_frames import is_library
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.native_frames import is_gpu_wait, is_native
from ray_rl_debug.analyze.nodes import NodeKind, kind_of, name_of, split
from ray_rl_debug.analyze.pauses import napping
from ray_rl_debug.analyze.rank_counters import Joined
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.analyze.stacks import stack_frames
from ray_rl_debug.analyze.unread_coroutines import is_blind
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waiting import Graph
from ray_rl_debug.analyze.waits_children import ITSELF
from ray_rl_debug.analyze.waits_launchers import OTHER_NODES
from ray_rl_debug.analyze.waits_news import WATCHED
from ray_rl_debug.analyze.worlds import World
from ray_rl_debug.model.log_story import LogStory
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Finding, Link, Who
from ray_rl_debug.model.snapshot import Frame, RayActor, RayPlacementGroup


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """View, solved graph and worlds."""

    view: View
    graph: Graph
    worlds: tuple[World, ...]
    joined: Joined = Joined()
    story: LogStory | None = None
    """What the logs tell."""
    ranks_at: dict[str, list[Seen]] = msgspec.field(default_factory=dict)
    """What `waiting_ranks` has found."""
    rings: list[tuple[Root, list[Seen], list[Edge]]] = msgspec.field(default_factory=list)
    """What `cycles` has found."""
    alone: list[list[Seen]] = msgspec.field(default_factory=list)
    """What `apart` has found."""

    def process_roots(self) -> Iterator[tuple[Root, Seen]]:
        """Roots that are one collected process; also processes named by the user, for which nobody else has to wait."""
        for root in self.graph.roots:
            if not root.is_cycle and root.nodes[0] in self.view.seen:
                yield root, self.view.seen[root.nodes[0]]
        yield from self.lonely("named")

    def apart(self) -> Sequence[Seen]:
        """Processes that wait for nobody and for whom nobody waits, kind after kind."""
        if not self.alone:
            linked = self.graph.by_source.keys() | self.graph.by_target.keys()
            first: dict[str, int] = {}
            found = [(first.setdefault(one.process.kind, len(first)), one) for one in self.view if one.key not in linked]
            self.alone.append([one for _, one in sorted(found, key=lambda pair: pair[0])])
        return self.alone[0]

    def lonely(self, kind: str) -> Iterator[tuple[Root, Seen]]:
        """Processes of a kind that do something and neither wait for another process nor are waited for; of files all count as named by the user."""
        for one in self.apart():
            is_asked = one.process.kind == kind or (self.view.by_hand and kind == "named")
            if is_asked and not one.is_idle and ended(one) is None:
                yield Root(nodes=(one.key,), waiters=(), is_cycle=False, chain=(), hope=self.graph.hope(one.key), certainty=Certainty.LIKELY), one

    def cycles(self) -> Sequence[tuple[Root, list[Seen], list[Edge]]]:
        """Roots that are cycles, with their members and the edges inside."""
        for root in self.graph.roots if not self.rings else ():
            if root.is_cycle:
                inside = set(root.nodes)
                edges = [e for n in root.nodes for e in self.graph.out(n) if e.target in inside]
                self.rings.append((root, [self.view.seen[n] for n in root.nodes if n in self.view.seen], edges))
        return self.rings

    def hope(self, one: Seen) -> Outlook:
        """What may become of a process."""
        return self.graph.hope(one.key)

    def goes_on(self, one: Seen) -> bool:
        """Does it move, or may it be lifted by somebody who does?"""
        return self.graph.hope(one.key) is Outlook.MOVES

    def reason(self, one: Seen) -> str:
        """What its own facts say of its future, in words."""
        return self.graph.solution.activities[one.key].reason

    def children_move(self, one: Seen) -> bool:
        """Do its child processes go on? It may well wait for them."""
        return any(self.goes_on(child) for child in self.view.children(one))

    def waiting_ranks(self, one: Seen) -> list[Seen]:
        """Ranks that wait for `one` in a collective, rendezvous or recv."""
        if one.key not in self.ranks_at:
            waiters = (self.view.seen.get(edge.source) for edge in self.graph.into([one.key]))
            self.ranks_at[one.key] = [w for w in waiters if w is not None and w.kind in WAITS_FOR_RANKS]
        return self.ranks_at[one.key]

    def actor(self, node: str) -> RayActor | None:
        """The actor that a node of the graph is."""
        return self.view.actors.get(name_of(node)) if kind_of(node) is NodeKind.ACTOR else None

    def placement_group(self, node: str) -> RayPlacementGroup | None:
        """The placement group that a node of the graph is."""
        return self.view.placement_groups.get(name_of(node)) if kind_of(node) is NodeKind.PLACEMENT_GROUP else None

    def who(self, node: str) -> Who:
        """Anything in the graph as the report names it."""
        one = self.view.seen.get(node)
        if one is not None:
            return self.view.who(one)
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
        if node == OTHER_NODES:
            return Who(label="a launcher of another node")
        if kind is NodeKind.ABSENT:
            world = next((w for w in self.worlds if w.key == name), None)
            return Who(label=f"the ranks of {world.name} that were not dumped" if world else "ranks that were not dumped")
        if kind is NodeKind.PID:
            machine, pid = split(node)
            return Who(label=f"pid {pid}", node=machine, pid=pid)
        if kind is NodeKind.UNSEEN:
            machine, _, what = name.partition("/")
            if what.startswith(ITSELF):
                return Who(label=what, node=machine)
            return Who(label=f"whoever {'writes' if what.startswith(WATCHED) else 'holds'} {what}", node=machine)
        if kind is NodeKind.GONE:
            engine = next(e for e in self.view.engines if e.key == name)
            return Who(label=f"{engine.lost} of {self.view.seen[name].name}", node=engine.node, pid=engine.lost_pid, role="engine")
        return Who(label=name or node, node=name if kind is NodeKind.MACHINE else None)

    def link(self, edge: Edge) -> Link:
        return Link(waiter=self.who(edge.source), target=self.who(edge.target), why=edge.words, evidence=edge.evidence, certainty=edge.certainty)

    def usual_s(self, one: Seen) -> float | None:
        """The longest finished call of the same name in this run, without those that stand apart; None when none has finished."""
        return call_age(self.view, one).usual_s

    def finished_calls(self, one: Seen) -> int:
        """How many calls of the same name this run has finished."""
        return call_age(self.view, one).finished


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A rule's finding, and the nodes of the graph that it explains."""

    finding: Finding
    explains: frozenset[str]
    rests_on: frozenset[str] = frozenset()
    """Nodes that must all stand still if the claim is to hold."""
    by_own_facts: bool = False
    """The claim needs only that they stand by their own facts, whatever becomes of whom they wait for."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """May a process be called hung?"""

    certainty: Certainty | None
    """None: it moves, nothing may be said against it."""
    reason: str


def judge(scene: Scene, one: Seen) -> Judgement:
    """What the law says of one process: it moves, perhaps it hangs, or it hangs."""
    activity, hope = scene.graph.solution.activities[one.key], scene.graph.hope(one.key)
    if hope is Outlook.MOVES:
        return Judgement(certainty=None, reason=activity.reason)
    if hope is not Outlook.STANDS:
        return Judgement(certainty=Certainty.POSSIBLE, reason=activity.reason)
    return Judgement(certainty=weaker(Certainty.LIKELY, scene.graph.solution.certainty[one.key]), reason=activity.reason)


def may_go_on(scene: Scene, one: Seen) -> str | None:
    """Why the process at the end of a wait may well go on although it stands still: its coroutines only sleep, or its children work."""
    if any(not is_own(t.chain[0]) for t in napping(one)):  # begun by a server or by Ray: on the way to an answer, not a loop of its own
        return "coroutines of the process that should answer sleep and will go on by themselves"
    if one.is_idle and is_blind(scene.view, one):
        return "the coroutines of the process that should answer could not be read"
    return "a child of the process that should answer works" if _works_below(scene, one) else None


def _works_below(scene: Scene, one: Seen) -> bool:
    return any(child.is_at_work or _works_below(scene, child) for child in scene.view.children(one))


def weaker(a: Certainty, b: Certainty) -> Certainty:
    order = (Certainty.PROVEN, Certainty.LIKELY, Certainty.POSSIBLE)
    return order[max(order.index(a), order.index(b))]


def waits(count: int, what: str = "process") -> str:
    """``1 process waits``, ``3 processes wait``; ``2 ranks wait``."""
    return f"1 {what} waits" if count == 1 else f"{count} {what}{'es' if what.endswith('s') else 's'} wait"


def listed(labels: Sequence[str], most: int = 3) -> str:
    """``a``, ``a and b``, ``a, b and c``, ``a, b, c and 5 more``."""
    shown = list(labels[:most])
    last = f"{len(labels) - most} more" if len(labels) > most else shown.pop() if shown else ""
    return f"{', '.join(shown)} and {last}" if shown else last


_WRAPPERS = (
    "torch/distributed/c10d_logger.py",
    "ray/util/tracing/tracing_helper.py",
    "ray/_private/client_mode_hook.py",
    "ray/_private/auto_init_hook.py",
)


def stack_evidence(one: Seen, depth: int = 4, *, thread: SeenThread | None = None) -> Evidence:
    """The innermost frames of `thread`, else of the telling one, as evidence; without stacks the running method."""
    thread = thread or one.followed or one.telling
    unread = next((r for r in one.process.remarks if r.kind == "unread"), None)
    if thread is None and unread is not None:
        state = f"state {one.process.state}; " if one.process.state else ""
        text = f"{state}its stack could not be read: {unread.text[:200]}"
        return Evidence(kind="proc", where=one.where(), text=text, source=f"{unread.file}:{unread.line}")
    if thread is None:
        is_program = one.is_before_worker or (one.process.kind == "named" and not one.identity.method)
        in_call = next((t.call for t in one.process.threads[:1] if is_program), None)
        told = f"in the system call {in_call}" if in_call else f"title says {one.identity.method or 'idle'}"
        if (kept := one.kept_by) is not None:
            place = ", ".join(filter(None, (kept.wchan, f"call {kept.call}" if kept.call else None)))
            text = f"state {one.process.state}: it was ended, but its thread {kept.tid} stands in the kernel (state D{f', {place}' if place else ''})"
            return Evidence(kind="proc", where=one.where(), text=text)
        if one.has_ended:
            return Evidence(kind="proc", where=one.where(), text=f"state {one.process.state}: it has ended, and waits for its parent to take note")
        if one.process.state in ("D", "T", "t") and one.process.kind != "ray-worker":
            wchan = next((t.wchan for t in one.process.threads if t.wchan), None)
            told = f"state {one.process.state}{f', in the kernel at {wchan}' if wchan else ''}"
        return Evidence(kind="proc", where=one.where(), text=f"{told}; no stack")
    own = thread.place.own or 0
    # What Ray and torch wrap around each call tells nothing: above the own code the call itself is named, below it only own code.
    call = [f for f in thread.frames[:own] if not f.file.endswith(_WRAPPERS)][-1:]
    if thread.place.own is None and all(is_native(f) for f in thread.frames):
        # what has no name, and what the C library calls, tells less
        named_ones = [f for f in thread.frames if not f.function.startswith(_NAMELESS)]
        call = [f for f in named_ones if "::" in f.function or not f.function.startswith("_")] or list(thread.frames)
        call = call[: depth + 1]
    frames = [*call, *(f for i, f in enumerate(thread.frames[own:]) if i == 0 or not is_library(f))][: depth + 1]
    if thread.place.own is None and call:
        frames = call
    elif thread.place.own is None and is_stacks_alone(one.process):
        frames = list(thread.frames[: depth + 1])  # libraries all the way: theirs are all that there is to show
    text = " < ".join(_frame(f) for f in frames) + _in_c(one, thread)
    named = thread.name or thread.tid
    return Evidence(kind="stack", where=f"{one.where()} thread {named}" if named else one.where(), text=text, source=one.source)


def _in_c(one: Seen, thread: SeenThread) -> str:
    """What it did in C, where that was read once behind the window: ``; there in C: cuStreamSynchronize (libcuda.so.580)``."""
    read = next((r for r in one.process.in_c if r.tid == thread.tid and r.stack == thread.sample.stack), None)
    frames = stack_frames(one.node, read.calls) if read is not None else ()
    waiting = [f for f in frames if is_gpu_wait(f)] or list(frames)
    return f"; there in C: {_frame(waiting[0])}" if waiting else ""


_NAMELESS = ("??", "0x", "<unknown")
"""Frames of libraries without symbols."""


def _frame(frame: Frame) -> str:
    if frame.file in ("", "[unknown]"):
        return frame.function
    return f"{frame.function} ({frame.file.rsplit('/', 1)[-1]}{f':{frame.line}' if frame.line else ''})"


def proc_evidence(one: Seen, text: str) -> Evidence:
    return Evidence(kind="proc", where=one.where(), text=text, source=one.source)


def waiter_evidence(waiters: Iterable[Seen]) -> tuple[Evidence, ...]:
    """One line for the waiting ranks, folded by what they wait in."""
    known: dict[int, str] = {}
    by_place: dict[str, list[Seen]] = {}
    for one in waiters:
        place = one.place
        at = id(place)  # one for all that stand there
        if place is None or at not in known:
            known[at] = one.at()
        by_place.setdefault(known[at], []).append(one)
    return tuple(
        Evidence(
            kind="stack", where=first_labels(o.identity.label for o in ones), text=text if len(ones) == 1 else ones[0].they(), source=_sources(ones)
        )
        for text, ones in list(by_place.items())[:4]
    )


def _sources(ones: Iterable[Seen]) -> str | None:
    """The files of the first few; nobody reads the names of hundreds."""
    known = list(dict.fromkeys(source for one in islice(ones, _MANY) if (source := one.source) is not None))
    return ", ".join(known[:3]) + (", ..." if len(known) > 3 else "") or None


def first_labels(labels: Iterable[str]) -> str:
    """The first six, and how many more there are."""
    labels = list(labels)
    short = _shortest(labels)
    first = nsmallest(6, short, key=lambda label: [int(part) if part.isdigit() else part for part in _DIGITS.split(label)])
    return ", ".join(first) + (f" and {len(labels) - 6} more" if len(labels) > 6 else "")


def _shortest(labels: list[str]) -> list[str]:
    """Of many labels that differ in the number at their end alone those with the fewest digits, six at least: the smallest are among them."""
    start = labels[0].rstrip("0123456789") if len(labels) >= _MANY else ""
    rests = [label.removeprefix(start) for label in labels] if start else [""]
    if "" in rests or not "".join(rests).isdigit() or any(rest[0] == "0" and rest != "0" for rest in rests):
        return labels
    by_length = sorted(labels, key=len)
    return by_length[: bisect_right(by_length, len(by_length[5]), key=len)]


_MANY = 64
_DIGITS = re.compile(r"(\d+)")


def _node_names(view: View) -> dict[str | None, str]:
    """Names of machines by Ray's id, those that were seen before those of Ray's table."""
    known: dict[str | None, str] = {}
    for node in view.snapshot.nodes:
        known.setdefault(node.node_id, node.name)
    for row in view.ray.nodes if view.ray is not None else ():
        known.setdefault(row.node_id, row.host)
    return known


def dead_actor_who(view: View, actor: RayActor) -> Who:
    node = view.once(_node_names).get(actor.node_id)
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
