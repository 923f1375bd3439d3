"""Where the waiting ends: the roots of a solution of the law of waiting.

From an activity we follow the waits that keep it where it is, to all that could end them; where one of these moves, not to those that
pause or were not seen: they keep nobody. Hope never rises on the way.
A root is a strongly connected part that would stay where it is *even if everybody outside of it went on*. One activity that nothing keeps
is the culprit, several are a deadlock. A part without exit is always a root. A ring with an exit is one too if the ring alone keeps it: two
ranks that wait for each other still do so when the dead process that one of them also waits for is replaced. So whoever frees all roots
frees all that stand, and a root that is not freed goes on standing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.solve import DOUBT, Outlook, Solution, Wait
from ray_rl_debug.model.report import Certainty


class Step(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One wait on the way down, and which of its `any_of` the way takes."""

    wait: Wait
    target: str


_Toward = dict[str, Step | None]
"""For each waiter the next step down; None at those that wait for the root itself."""
_Above = tuple[_Toward, tuple[str, ...], list[str]]
"""How to come down to a root, from everybody above it; all of these, surest first; and the surest, nearest first."""


class Root(msgspec.Struct, frozen=True, kw_only=True):
    """A part where the waiting ends."""

    nodes: tuple[str, ...]
    hope: Outlook
    """The same for all nodes. STANDS: it never goes on. UNSEEN: to blame if it stands. WAKES: to blame if it never wakes. MOVES: the others
    wait while it works."""
    is_cycle: bool
    waiters: tuple[str, ...]
    """Everybody who is kept, directly or not, by it: the surest first, then the nearest."""
    chain: tuple[Step, ...]
    """A shortest of the surest ways down, from the activity that was asked for or else the farthest waiter; a cycle is closed at the end."""
    certainty: Certainty
    """The weakest evidence on the chain; *possible* if anybody there has more hope than STANDS."""


def roots(solution: Solution, level: Outlook = Outlook.STANDS) -> tuple[Root, ...]:
    """The roots among the activities with at most this hope, the least hope first, then most waiters first.

    With STANDS, those to blame for what stands. With UNSEEN, also those to blame if all that was not seen stands; with WAKES, also if
    the sleepers never wake; with MOVES, also those the others merely wait for.
    """
    return _roots(solution, [name for name, hope in solution.hope.items() if hope <= level], None)


def roots_of(solution: Solution, waiter: str) -> tuple[Root, ...]:
    """The roots that keep this one activity where it is; each chain begins with it."""
    reached = {waiter: None}
    pending = [waiter]
    while pending:
        for wait in solution.keeping[pending.pop()]:
            for name in _to_movers(solution, wait).any_of:
                if name not in reached:
                    reached[name] = None
                    pending.append(name)
    return _roots(solution, reached, waiter)


def _roots(solution: Solution, among: Iterable[str], asked: str | None) -> tuple[Root, ...]:
    keeping = {name: tuple([_to_movers(solution, wait) for wait in solution.keeping[name]]) for name in sorted(among)}
    ways = _Ways(keeping, solution.certainty)
    found = []
    for nodes in _parts(keeping):
        waiters, chain = ways.down_to(nodes, asked)
        doubts = [DOUBT[solution.certainty.get(name, Certainty.POSSIBLE)] for name in nodes] + [ways.doubt(step.wait) for step in chain]
        found.append(
            Root(
                nodes=nodes,
                hope=solution.hope[nodes[0]],
                is_cycle=any(wait.any_of and set(wait.any_of) <= set(nodes) for name in nodes for wait in keeping[name]),
                waiters=waiters,
                chain=chain,
                certainty=tuple(DOUBT)[max(doubts)],
            )
        )
    return tuple(sorted(found, key=worst_first))


def worst_first(root: Root) -> tuple[Outlook, int, int, tuple[str, ...]]:
    """The least hope first, then most waiters, then the surest."""
    return root.hope, -len(root.waiters) - (len(root.nodes) if root.is_cycle else 0), DOUBT[root.certainty], root.nodes


def _to_movers(solution: Solution, wait: Wait) -> Wait:
    """The wait without those that pause or were not seen, if somebody moves: they keep nobody. Who stands for good is told all the same."""
    if len(wait.any_of) < 2:
        return wait
    hopes = {name: solution.hope[name] for name in wait.any_of}
    if Outlook.MOVES not in hopes.values():
        return wait
    return msgspec.structs.replace(wait, any_of=tuple(name for name, hope in hopes.items() if hope not in (Outlook.UNSEEN, Outlook.WAKES)))


def _parts(keeping: Mapping[str, Sequence[Wait]]) -> list[tuple[str, ...]]:
    """The strongly connected parts that stay even if everybody outside of them goes on.

    Whoever has waits, but none that its own part alone keeps up, would go on and is left out; the rest may then fall into smaller parts,
    so we ask again until nothing changes. Two or three times in practice, each linear.
    """
    keeping = _without_mere_waiters(keeping)
    part = _components({name: [t for wait in waits for t in wait.any_of if t in keeping] for name, waits in keeping.items()})
    while True:
        inner = {name: [w for w in keeping[name] if all(part.get(t) == part[name] for t in w.any_of)] for name in part}
        if all(len(waits) == len(keeping[name]) for name, waits in inner.items()):
            break  # no wait leads out of its part: nothing changes any more
        stays = {name: waits for name, waits in inner.items() if waits or not keeping[name]}
        finer = _components({name: [t for wait in waits for t in wait.any_of if t in stays] for name, waits in stays.items()})
        if len(finer) == len(part) and len(set(finer.values())) == len(set(part.values())):
            break
        part = finer
    members: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(part):
        members[part[name]].append(name)
    return [tuple(names) for names in members.values()]


def _without_mere_waiters(keeping: Mapping[str, Sequence[Wait]]) -> dict[str, Sequence[Wait]]:
    """Without those that wait for others and for whom nobody waits, but others of their sort: they are in no ring and no end of any waiting."""
    waiters = Counter(name for waits in keeping.values() for wait in waits for name in wait.any_of)
    passes_on = {name for name, waits in keeping.items() if waits and all(wait.any_of for wait in waits)}
    mere = [name for name in keeping if name in passes_on and name not in waiters]
    for waiter in mere:  # grows as we walk it
        for wait in keeping[waiter]:
            for name in wait.any_of:
                waiters[name] -= 1
                if not waiters[name] and name in passes_on:
                    mere.append(name)
    left = set(mere)
    return {name: waits for name, waits in keeping.items() if name not in left}


def _components(ahead: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """For each node one member of its strongly connected component (Tarjan, 1972); no recursion, chains are longer than Python's stack."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    component: dict[str, str] = {}
    stack: list[str] = []
    for start in ahead:
        path: list[tuple[str, Iterator[str]]] = []
        entered: str | None = None if start in index else start
        while entered is not None or path:
            if entered is not None:
                index[entered] = low[entered] = len(index)
                stack.append(entered)
                path.append((entered, iter(ahead[entered])))
            node, targets = path[-1]
            entered = None
            for target in targets:
                if target not in index:
                    entered = target
                    break
                if target not in component:
                    low[node] = min(low[node], index[target])
            if entered is not None:
                continue
            path.pop()
            if path:
                low[path[-1][0]] = min(low[path[-1][0]], low[node])
            while low[node] == index[node] and node not in component:
                component[stack.pop()] = node
    return component


class _Ways:
    """Ways down the waits that keep somebody, the surest first, then the shortest."""

    def __init__(self, keeping: Mapping[str, Sequence[Wait]], certainty: Mapping[str, Certainty]) -> None:
        self.keeping = keeping
        self.certainty = certainty
        self.into: defaultdict[str, list[Wait]] = defaultdict(list)
        for waits in keeping.values():
            for wait in waits:
                for name in wait.any_of if len(wait.any_of) < 2 else set(wait.any_of):
                    self.into[name].append(wait)
        self.known: dict[tuple[tuple[str, int], ...], _Above] = {}

    def doubt(self, wait: Wait) -> int:
        """Of a wait on a chain: the doubt about it, or about whether its waiter stands at all."""
        return max(DOUBT[wait.certainty], DOUBT[self.certainty.get(wait.waiter, Certainty.POSSIBLE)])

    def down_to(self, nodes: tuple[str, ...], asked: str | None) -> tuple[tuple[str, ...], tuple[Step, ...]]:
        """All waiters of a root, and the chain down to it."""
        inside = set(nodes)
        doors: dict[str, Step] = {}
        for name in nodes:
            for wait in self.into[name]:
                door = doors.get(wait.waiter)
                if wait.waiter not in inside and (door is None or self.doubt(wait) < self.doubt(door.wait)):
                    doors[wait.waiter] = Step(wait=wait, target=name)
        heads = tuple(sorted((name, self.doubt(door.wait)) for name, door in doors.items()))
        if heads not in self.known:  # roots with the same heads, such as all absent ranks of one collective, share their waiters
            self.known[heads] = self._above(heads)
        toward, waiters, surest = self.known[heads]
        start = asked or next((name for name in reversed(surest) if name not in inside), nodes[0])
        chain = []
        while start not in inside:
            chain.append(toward[start] or doors[start])
            start = chain[-1].target
        if any(name in toward for name in nodes):
            waiters = tuple(name for name in waiters if name not in inside)
        return waiters, (*chain, *self._around(start, inside))

    def _above(self, heads: Sequence[tuple[str, int]]) -> _Above:
        toward: _Toward = {}
        surest: list[str] = []
        for doubt in DOUBT.values():
            toward.update({name: None for name, its_doubt in heads if its_doubt <= doubt and name not in toward})
            found = list(toward)
            self._spread(toward, found, doubt)
            surest = surest or found
        return toward, tuple(toward), surest

    def _around(self, entry: str, inside: set[str]) -> Iterator[Step]:
        """Once around a cycle, from `entry` back to it; nothing where a root is no cycle."""
        if len(inside) == 1 and not any(inside.issuperset(wait.any_of) for wait in self.keeping[entry] if wait.any_of):
            return
        toward: _Toward = {}
        for doubt in DOUBT.values():
            self._spread(toward, [entry, *toward], doubt, inside)
        step = toward.get(entry)
        while step is not None:
            yield step
            step = toward[step.target] if step.target != entry else None

    def _spread(self, toward: _Toward, found: list[str], doubt: int, inside: set[str] | None = None) -> None:
        """Breadth first from what is found to those it keeps, by waits with at most this doubt, and only by what a part itself keeps up."""
        for name in found:  # grows as we walk it
            for wait in self.into[name]:
                if wait.waiter in toward or self.doubt(wait) > doubt:
                    continue
                if inside is None or (wait.waiter in inside and inside.issuperset(wait.any_of)):
                    toward[wait.waiter] = Step(wait=wait, target=name)
                    found.append(wait.waiter)
