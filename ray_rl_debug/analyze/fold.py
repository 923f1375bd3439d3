"""Equal activities are one: those that nothing tells apart are solved once, and the solution is spread over all of them.

Ranks of one program wait for the same and are waited for by the same, however many they are. Two activities are alike if both stand, as surely
as each other, and if their edges lead to the same and come from the same, for the same reasons. To swap them changes nothing in the graph, so
the law says the same of both. Who waits for nobody is never folded: where the waiting ends, each is told by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.edges import Edge
from ray_rl_debug.analyze.on_demand import OnDemand
from ray_rl_debug.analyze.roots import Root, Step
from ray_rl_debug.analyze.solve import Activity, Outlook, Solution
from ray_rl_debug.model.report import Certainty


class Folded(msgspec.Struct, frozen=True):
    """Which activities are alike."""

    head: Mapping[str, str]
    """Of each one that is folded away: the first by name of those that are like it, which stands for all."""
    like: Mapping[str, tuple[str, ...]]
    """Of each head: all that it stands for, itself first, by name."""

    def all_of(self, names: Iterable[str]) -> Iterator[str]:
        """The names, each head followed by those that it stands for."""
        for name in names:
            yield from self.like.get(name, (name,))


def fold(activities: Iterable[Activity], out: Mapping[str, Sequence[Edge]], into: Mapping[str, Sequence[Edge]]) -> Folded:
    """Find those that are alike; the edges of each activity have to be in one order. Time grows with the edges."""
    ahead: defaultdict[_Key, list[str]] = defaultdict(list)
    for activity in activities:
        edges = out.get(activity.id)
        if edges and activity.outlook is Outlook.STANDS:
            leads = tuple([(e.target, e.why, e.op, e.among, e.certainty) for e in edges])
            ahead[(activity.certainty, leads)].append(activity.id)
    like: dict[str, tuple[str, ...]] = {}
    for candidates in ahead.values():
        if len(candidates) < 2:
            continue
        behind: defaultdict[_Key, list[str]] = defaultdict(list)
        for name in sorted(candidates):
            behind[tuple([(e.source, e.why, e.op, e.among, e.certainty) for e in into.get(name, ())])].append(name)
        like.update((names[0], tuple(names)) for names in behind.values() if len(names) > 1)
    return Folded({name: names[0] for names in like.values() for name in names[1:]}, like)


_Key = tuple[object, ...]
"""What has to be equal."""


def without_folded(edges: Iterable[Edge], folded: Folded) -> list[Edge]:
    """The edges between those that stand for themselves or for others: all others say the same once more."""
    away = folded.head
    return [e for e in edges if e.source not in away and e.target not in away]


def unfold_solution(solution: Solution, activities: Mapping[str, Activity], folded: Folded) -> Solution:
    """The solution for all `activities`: of those that were not solved, as nobody waits, what their own facts say when they are asked for.

    What keeps somebody is told of the heads only.
    """

    def own_certainty(name: str) -> Certainty | None:
        return activities[name].certainty if activities[name].outlook is Outlook.STANDS and name not in solved else None

    solved = {**solution.hope, **{name: solution.hope[head] for name, head in folded.head.items()}}
    certainty = {**solution.certainty, **{name: solution.certainty[head] for name, head in folded.head.items() if head in solution.certainty}}
    return Solution(
        activities=OnDemand(solution.activities, activities, activities.get),
        hope=OnDemand(solved, activities, lambda name: activities[name].outlook),
        certainty=OnDemand(certainty, activities, own_certainty),
        keeping=solution.keeping,
    )


def unfold_root(root: Root, folded: Folded) -> Root:
    """The root with all that its nodes and waiters stand for."""
    nodes, waiters = tuple(sorted(folded.all_of(root.nodes))), tuple(folded.all_of(root.waiters))
    return msgspec.structs.replace(root, nodes=nodes, waiters=waiters, chain=_from_the_last(root, folded))


def _from_the_last(root: Root, folded: Folded) -> tuple[Step, ...]:
    """The chain, begun by the farthest waiter as if nothing were folded: of those that are alike the last."""
    if not root.chain or root.chain[0].wait.waiter in root.nodes:
        return root.chain
    first = root.chain[0]
    *_, last = folded.all_of([first.wait.waiter])
    return (msgspec.structs.replace(first, wait=msgspec.structs.replace(first.wait, waiter=last)), *root.chain[1:])
