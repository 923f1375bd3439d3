"""Who waits for a node, by the edges found so far, also while more are found."""

from __future__ import annotations

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.known_edges import KnownEdges, all_waiters, waiters
from ray_rl_debug.model.report import Certainty


def _edge(source: str, target: str) -> Edge:
    return Edge(source=source, target=target, why=Why.SOCKET, evidence="reads", certainty=Certainty.LIKELY)


def test_direct_and_by_way_of_others() -> None:
    known = [_edge("a", "b"), _edge("b", "c"), _edge("d", "c")]
    assert waiters("c", known) == {"b", "d"}
    assert all_waiters("c", known) == {"a", "b", "d"}
    assert all_waiters("a", known) == set()


def test_a_ring_ends() -> None:
    assert all_waiters("a", KnownEdges([_edge("a", "b"), _edge("b", "a")])) == {"a", "b"}


def test_what_is_added_later_counts() -> None:
    known = KnownEdges([_edge("a", "b")])
    assert waiters("b", known) == {"a"}
    known += [_edge("c", "a"), _edge("d", "b")]
    assert isinstance(known, KnownEdges)
    assert waiters("b", known) == {"a", "d"}
    assert all_waiters("b", known) == {"a", "c", "d"}
