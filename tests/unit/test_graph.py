"""The solver: roots, cycles, chains; independent of the order of edges."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ray_rl_debug.analyze.graph import Edge, Why, solve
from ray_rl_debug.model.report import Certainty


def edge(source: str, target: str, certainty: Certainty = Certainty.PROVEN) -> Edge:
    return Edge(source=source, target=target, why=Why.CALL, evidence="seen", certainty=certainty)


def test_a_chain_ends_in_its_sink() -> None:
    graph = solve([edge("driver", "runner"), edge("runner", "rank0"), edge("rank0", "rank2"), edge("rank1", "rank2")])
    assert [(r.nodes, r.is_cycle, len(r.waiters)) for r in graph.roots] == [(("rank2",), False, 4)]
    assert [(e.source, e.target) for e in graph.roots[0].chain] == [("driver", "runner"), ("runner", "rank0"), ("rank0", "rank2")]


def test_a_ring_is_one_root() -> None:
    graph = solve([edge("a", "b"), edge("b", "a"), edge("driver", "a")])
    assert [(r.nodes, r.is_cycle, r.waiters) for r in graph.roots] == [(("a", "b"), True, ("driver",))]


def test_a_call_to_itself_is_a_ring_of_one_and_other_edges_to_itself_are_none() -> None:
    call = Edge(source="a", target="a", why=Why.QUEUED_CALL, evidence="seen", certainty=Certainty.PROVEN)
    graph = solve([edge("driver", "a"), call, edge("a", "a")])
    assert [(r.nodes, r.is_cycle, r.waiters) for r in graph.roots] == [(("a",), True, ("driver",))]
    assert [r.is_cycle for r in solve([edge("driver", "a"), edge("a", "a")]).roots] == [False]


def test_the_root_with_most_waiters_comes_first() -> None:
    graph = solve([edge("a", "x"), edge("b", "y"), edge("c", "y")])
    assert [r.nodes for r in graph.roots] == [("y",), ("x",)]


def test_the_surest_of_several_edges_stays() -> None:
    graph = solve([edge("a", "b", Certainty.POSSIBLE), edge("a", "b", Certainty.PROVEN)])
    assert [e.certainty for e in graph.edges] == [Certainty.PROVEN]


def test_a_very_long_chain_needs_no_recursion() -> None:
    graph = solve([edge(f"n{i:06}", f"n{i + 1:06}") for i in range(20_000)])
    assert [(r.nodes, len(r.chain)) for r in graph.roots] == [(("n020000",), 20_000)]


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=30), st.randoms())
def test_order_does_not_matter_and_every_waiter_reaches_a_root(pairs, random) -> None:  # type: ignore[no-untyped-def]
    edges = [edge(str(a), str(b)) for a, b in pairs]
    first = solve(edges)
    random.shuffle(edges)
    assert solve(edges) == first
    rooted = {n for r in first.roots for n in (*r.nodes, *r.waiters)}
    assert rooted == {n for e in first.edges for n in (e.source, e.target)}
