"""Equal activities are solved once: the law must say of each the same as if nothing were folded."""

from __future__ import annotations

from collections import defaultdict

from graphs_of_waits import activities, activity
from hypothesis import given, settings
from hypothesis import strategies as st

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.fold import Folded, fold
from ray_rl_debug.analyze.roots import Root, roots
from ray_rl_debug.analyze.solve import Activity, Outlook, Solution, solve
from ray_rl_debug.analyze.waiting import as_waits, solve_edges
from ray_rl_debug.model.report import Certainty

NAMES = tuple("abcdefg")
edges = st.lists(
    st.builds(
        lambda ends, why, certainty: Edge(source=ends[0], target=ends[1], why=why, evidence=" to ".join(ends), certainty=certainty),
        st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES[:3])),
        st.sampled_from((Why.COLLECTIVE, Why.COLLECTIVE, Why.GIVERS)),
        st.sampled_from((Certainty.PROVEN, Certainty.PROVEN, Certainty.POSSIBLE)),
    ),
    max_size=14,
    unique_by=lambda e: (e.source, e.target),
)
"""Few targets and few reasons, so that many are alike; a wait for givers may be ended by any one of several."""


def _by_ends(given_edges: list[Edge]) -> tuple[dict[str, list[Edge]], dict[str, list[Edge]]]:
    out, into = defaultdict(list), defaultdict(list)
    for edge in given_edges:
        out[edge.source].append(edge)
        into[edge.target].append(edge)
    return out, into


def _folded(given_activities: list[Activity], given_edges: list[Edge]) -> Folded:
    return fold(given_activities, *_by_ends(given_edges))


def _solved(given_activities: list[Activity], given_edges: list[Edge]) -> tuple[Solution, tuple[Root, ...]]:
    return solve_edges({a.id: a for a in given_activities}, given_edges, *_by_ends(given_edges))


@given(activities, edges)
@settings(max_examples=400, deadline=None)
def test_folded_or_not_the_law_says_the_same(acts: list[Activity], given_edges: list[Edge]) -> None:
    given_edges.sort(key=lambda e: (e.source, e.target))
    solution, found = _solved(acts, given_edges)
    plain = solve(acts, as_waits(given_edges))
    assert (solution.hope, solution.certainty, solution.activities) == (plain.hope, plain.certainty, plain.activities)
    expected = [r for r in roots(plain, Outlook.MOVES) if r.waiters or r.is_cycle]
    assert {(r.nodes, r.hope, r.is_cycle, r.certainty, frozenset(r.waiters)) for r in found} == {
        (r.nodes, r.hope, r.is_cycle, r.certainty, frozenset(r.waiters)) for r in expected
    }
    for root in found:
        assert all(step.target in step.wait.any_of for step in root.chain)
        assert len(root.chain) == len(next(r for r in expected if r.nodes == root.nodes).chain)


def test_ranks_that_wait_for_the_same_are_one() -> None:
    ranks = [f"rank{n}" for n in range(4)]
    acts = [activity(name) for name in ("driver", *ranks, "late")]
    given_edges = [Edge(source="driver", target=r, why=Why.CALL, evidence="its call") for r in ranks]
    given_edges += [Edge(source=r, target="late", why=Why.COLLECTIVE, evidence="has not joined") for r in ranks]
    assert _folded(acts, given_edges).like == {"rank0": tuple(ranks)}
    (root,) = _solved(acts, given_edges)[1]
    assert (root.nodes, set(root.waiters)) == (("late",), {"driver", *ranks})


def test_what_differs_is_not_folded() -> None:
    to_late = [Edge(source=name, target="late", why=Why.COLLECTIVE, evidence="has not joined") for name in ("a", "b", "c", "d")]
    asked = Edge(source="driver", target="d", why=Why.CALL, evidence="its call")
    acts = [activity("a"), activity("b", certainty=Certainty.LIKELY), activity("c", Outlook.UNSEEN), activity("d"), activity("late")]
    assert not _folded(acts, [*to_late, asked]).like


def test_who_waits_for_nobody_is_told_alone() -> None:
    given_edges = [Edge(source="driver", target=name, why=Why.CALL, evidence="its call") for name in ("a", "b")]
    acts = [activity("driver"), activity("a"), activity("b")]
    assert not _folded(acts, given_edges).like
    assert {root.nodes for root in _solved(acts, given_edges)[1]} == {("a",), ("b",)}
