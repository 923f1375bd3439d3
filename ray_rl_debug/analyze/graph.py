"""The wait-for graph and its solution.

Nodes are processes (``node/pid``) and things that are none: ``actor:ID``, ``task:ID``, ``pg:ID``, ``ext:HOST:PORT``, ``file:PATH``.
An edge says "waits for" with its evidence. Strongly connected components (Tarjan, 1972) condense cycles: a component without outgoing
edges is where the waiting ends. One node there is the root cause, several are a deadlock, one outside the cluster is external.
An actor whose call to itself stands in its own queue is a deadlock of one.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from ray_rl_debug.model.report import Certainty

_SURE = {Certainty.PROVEN: 0, Certainty.LIKELY: 1, Certainty.POSSIBLE: 2}


class Why(str, enum.Enum):
    """Why one waits for another; the value is what a report prints where the wait has no name of its own."""

    CALL = "ray.get"
    """The result of a Ray call that runs there."""
    QUEUED_CALL = "ray.get (queued)"
    """A Ray call that stands in the queue of its actor."""
    ARGUMENT = "ray.argument"
    """A Ray call whose result is an argument of one that waits."""
    RESOURCES = "resources"
    """A Ray actor, call or placement group that was not started yet."""
    COLLECTIVE = "collective"
    """A rank that has not joined a collective, rendezvous or creation of a group."""
    P2P = "recv"
    """The rank at the other end of a send or recv."""
    RECEIVERS = "recv of any"
    """Ranks any one of which may end a wait: the peers of several threads, or all that may be the peer of one that does not tell it."""
    SAME_CALL = "same call"
    """A fellow in the same method that does something else."""
    POLL = "polls"
    """Whoever could change what is looked at again and again."""
    DEAD_MEANWHILE = "awaits"
    """An actor that died after the waiting began."""
    AWAITED_SOCKET = "await socket"
    AWAITED_CHILD = "await child"
    SOCKET = "socket"
    PIPE = "pipe"
    FILE_LOCK = "flock"
    """The holder of a lock on a file, as the kernel tells it."""
    TRIED_LOCK = "file lock"
    """The holder of a lock on a file that is tried again and again; the kernel lists no waiter then."""
    BUILD_LOCK = "lock file"
    CHILD = "waitpid"
    """The end of a child process."""
    DATALOADER = "DataLoader"
    CHILD_QUEUE = "queue of a child"
    SEMAPHORE = "semaphore"
    """The holder of a lock or semaphore between processes."""
    GIVERS = "semaphore (given)"
    """Those who give a semaphore back that others take: it counts room in a queue, items of it, or what is unfinished."""
    ENGINE = "engine"
    """A server waits for its engine core."""
    WORKERS = "workers' answers"
    """An engine core waits for its workers."""
    MESSAGE = "message"
    WEIGHTS = "weights"
    """A rank sends weights, and nobody takes them."""
    TOLD = "collective (told)"
    """A rank of which a file says that it is elsewhere, without its stack."""
    ASSUMED = "somebody"
    """Somebody whom the stacks do not name: any of those nearer to the work."""
    INSIDE = "another call"
    """Another call of the same actor, or one that somebody may still make: any one of them may end a wait inside of its process."""
    COROUTINE = "await"
    """Inside one process: a coroutine, or the lock that it wants."""


RAY_CALLS = frozenset({Why.CALL, Why.QUEUED_CALL, Why.ARGUMENT, Why.RESOURCES})
"""Waits for what Ray runs, or has not begun to run."""


class Edge(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`source` waits for `target`."""

    source: str
    target: str
    why: Why
    evidence: str
    certainty: Certainty = Certainty.PROVEN
    op: str = ""
    """What the wait is called where it has a name of its own: ``all_reduce``, ``ray.wait``."""

    @property
    def words(self) -> str:
        """``all_reduce``, ``ray.get (queued)``, ``socket``: what a report prints over the arrow."""
        return self.op or self.why.value


class Root(msgspec.Struct, frozen=True, kw_only=True):
    """A component where the waiting ends."""

    nodes: tuple[str, ...]
    waiters: tuple[str, ...]
    """Everything that reaches it, nearest first."""
    is_cycle: bool
    chain: tuple[Edge, ...]
    """The longest shortest way down to it."""


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    edges: tuple[Edge, ...]
    roots: tuple[Root, ...]
    """Most waiters first."""
    by_source: Mapping[str, tuple[Edge, ...]]
    by_target: Mapping[str, tuple[Edge, ...]]

    def out(self, node: str) -> tuple[Edge, ...]:
        return self.by_source.get(node, ())

    def into(self, nodes: Iterable[str]) -> tuple[Edge, ...]:
        wanted = set(nodes)
        return tuple(e for n in sorted(wanted) for e in self.by_target.get(n, ()) if e.source not in wanted)


def solve(edges: Iterable[Edge]) -> Graph:
    """Solve a set of edges; of several edges between two nodes the surest stays.

    Pure; the result does not depend on the order of the edges. Time grows with nodes plus edges, but for the chains.
    """
    best: dict[tuple[str, str], Edge] = {}
    for edge in sorted(edges, key=lambda e: (e.source, e.target, _SURE[e.certainty], e.words)):
        if edge.source != edge.target or edge.why is Why.QUEUED_CALL:
            best.setdefault((edge.source, edge.target), edge)
    out: dict[str, list[str]] = defaultdict(list)
    back: dict[str, list[str]] = defaultdict(list)
    nodes: set[str] = set()
    for source, target in best:
        out[source].append(target)
        back[target].append(source)
        nodes |= {source, target}
    component = _components(sorted(nodes), out)
    members: dict[int, list[str]] = defaultdict(list)
    for node in sorted(nodes):
        members[component[node]].append(node)
    roots = []
    for number, inside in members.items():
        if any(component[t] != number for n in inside for t in out[n]):
            continue
        waiters, chain = _reach_back(inside, back, best)
        roots.append(Root(nodes=tuple(inside), waiters=waiters, is_cycle=len(inside) > 1 or (inside[0], inside[0]) in best, chain=chain))
    roots.sort(key=lambda r: (-len(r.waiters) - (len(r.nodes) if r.is_cycle else 0), r.nodes))
    by_source = {node: tuple(best[(node, target)] for target in targets) for node, targets in out.items()}
    by_target = {node: tuple(best[(source, node)] for source in sources) for node, sources in back.items()}
    return Graph(edges=tuple(best.values()), roots=tuple(roots), by_source=by_source, by_target=by_target)


def _components(nodes: list[str], out: Mapping[str, list[str]]) -> dict[str, int]:
    """Tarjan's strongly connected components, without recursion (a chain may be longer than Python's stack)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    on_stack: set[str] = set()
    stack: list[str] = []
    component: dict[str, int] = {}
    for start in nodes:
        if start in index:
            continue
        work: list[tuple[str, int]] = [(start, 0)]
        while work:
            node, position = work.pop()
            if position == 0:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            targets = out.get(node, [])
            if position > 0:
                low[node] = min(low[node], low[targets[position - 1]])
            descended = False
            for i in range(position, len(targets)):
                target = targets[i]
                if target not in index:
                    work += [(node, i + 1), (target, 0)]
                    descended = True
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            if descended:
                continue
            if low[node] == index[node]:
                while True:
                    member = stack.pop()
                    on_stack.discard(member)
                    component[member] = index[node]
                    if member == node:
                        break
    return component


def _reach_back(inside: list[str], back: Mapping[str, list[str]], best: Mapping[tuple[str, str], Edge]) -> tuple[tuple[str, ...], tuple[Edge, ...]]:
    """Waiters of a component in order of distance, and the path from the farthest one down to it."""
    toward: dict[str, str] = {}
    frontier = list(inside)
    reached = set(inside)
    order: list[str] = []
    while frontier:
        following = []
        for node in frontier:
            for waiter in sorted(back.get(node, [])):
                if waiter not in reached:
                    reached.add(waiter)
                    toward[waiter] = node
                    order.append(waiter)
                    following.append(waiter)
        frontier = following
    chain: list[Edge] = []
    if order:
        node = order[-1]
        while node in toward:
            chain.append(best[(node, toward[node])])
            node = toward[node]
    return tuple(order), tuple(chain)
