"""The edges found so far, asked from their ends: who waits for a node, directly or by way of others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from ray_rl_debug.analyze.edges import Edge, Why


class KnownEdges(list[Edge]):
    """Edges in the order in which they were found, indexed by their ends. They are only ever added to."""

    def __init__(self, edges: Iterable[Edge] = ()) -> None:
        super().__init__(edges)
        self._into: defaultdict[str, list[Edge]] = defaultdict(list)
        self._of: defaultdict[Why, list[Edge]] = defaultdict(list)
        self._indexed = 0

    def into(self, node: str) -> Sequence[Edge]:
        """The waits for a node."""
        self._index()
        return self._into.get(node, ())

    def of(self, why: Why) -> Sequence[Edge]:
        """The waits of one kind, in their order."""
        self._index()
        return self._of.get(why, ())

    def _index(self) -> None:
        for edge in self[self._indexed :] if self._indexed < len(self) else ():
            self._into[edge.target].append(edge)
            self._of[edge.why].append(edge)
        self._indexed = len(self)


def edges_of(known: Sequence[Edge], *whys: Why) -> list[Edge]:
    """The waits of these kinds, kind after kind."""
    edges = _indexed(known)
    return [edge for why in whys for edge in edges.of(why)]


def waiters(node: str, known: Sequence[Edge]) -> set[str]:
    """Whoever waits for a node directly."""
    return {e.source for e in _indexed(known).into(node)}


def all_waiters(node: str, known: Sequence[Edge]) -> set[str]:
    """Whoever waits for a node, directly or by way of others."""
    edges = _indexed(known)
    found, left = set[str](), [node]
    while left:
        more = {e.source for e in edges.into(left.pop())} - found
        found |= more
        left += more
    return found


def _indexed(known: Sequence[Edge]) -> KnownEdges:
    return known if isinstance(known, KnownEdges) else KnownEdges(known)
