"""Where the waiting ends: roots against their definition, ways down, and examples."""

from __future__ import annotations

import random
from itertools import pairwise

from graphs_of_waits import activities, activity, slow_hope, stand, standing_sets, wait, waits
from hypothesis import given, settings

from ray_rl_debug.analyze.roots import Root, roots, roots_of
from ray_rl_debug.analyze.solve import Activity, Outlook, Wait, solve
from ray_rl_debug.model.report import Certainty

STANDS, UNSEEN, WAKES, MOVES = Outlook
PROVEN, LIKELY, POSSIBLE = Certainty.PROVEN, Certainty.LIKELY, Certainty.POSSIBLE


def nodes(found: tuple[Root, ...]) -> list[tuple[str, ...]]:
    return [root.nodes for root in found]


def way(root: Root) -> list[tuple[str, str]]:
    return [(step.wait.waiter, step.target) for step in root.chain]


def is_part(way_down: Wait, given_wait: Wait) -> bool:
    """Is it the wait, or the wait for those of its `any_of` that move?"""
    return way_down.waiter == given_wait.waiter and set(way_down.any_of) <= set(given_wait.any_of)


@given(activities, waits)
@settings(max_examples=200, deadline=None)
def test_who_frees_all_roots_frees_everybody_and_nobody_outside_frees_a_root(acts: list[Activity], given_waits: list[Wait]) -> None:
    found = roots(solve(acts, given_waits))
    accused = {name for root in found for name in root.nodes}
    freed = slow_hope([activity(a.id, MOVES) if a.id in accused else a for a in acts], given_waits)
    assert STANDS not in freed.values()
    for root in found:
        others = slow_hope([a if a.id in root.nodes else activity(a.id, MOVES) for a in acts], given_waits)
        assert {others[name] for name in root.nodes} == {STANDS}


@given(activities, waits)
@settings(max_examples=100, deadline=None)
def test_every_smallest_deadlock_is_in_a_root(acts: list[Activity], given_waits: list[Wait]) -> None:
    found = roots(solve(acts, given_waits))
    every = [s for s in standing_sets(acts, given_waits) if s]
    for smallest in (s for s in every if not any(other < s for other in every)):
        assert any(smallest <= set(root.nodes) for root in found)


@given(activities, waits)
@settings(max_examples=100, deadline=None)
def test_a_missing_fact_accuses_nobody_else(acts: list[Activity], given_waits: list[Wait]) -> None:
    before = [set(root.nodes) for root in roots(solve(acts, given_waits))]
    for missing in acts:
        after = roots(solve([a for a in acts if a is not missing], given_waits))
        assert all(any(set(root.nodes) <= other for other in before) for root in after)


@given(activities, waits)
@settings(max_examples=100, deadline=None)
def test_ways_down_are_ways(acts: list[Activity], given_waits: list[Wait]) -> None:
    solution = solve(acts, given_waits)
    for asked in (None, *solution.hope):
        for root in roots(solution, MOVES) if asked is None else roots_of(solution, asked):
            assert {solution.hope[name] for name in root.nodes} == {root.hope}
            for step, following in pairwise(root.chain):
                assert step.target == following.wait.waiter
            assert all(any(is_part(s.wait, w) for w in solution.keeping[s.wait.waiter]) and s.target in s.wait.any_of for s in root.chain)
            if root.chain:
                assert root.chain[-1].target in root.nodes
                assert asked is None or root.chain[0].wait.waiter == asked
                ring = [step for step in root.chain if step.wait.waiter in root.nodes]
                assert bool(ring) == root.is_cycle
                assert not ring or ring[0].wait.waiter == ring[-1].target
            assert not set(root.nodes) & set(root.waiters)
            assert root.certainty is POSSIBLE or root.hope is STANDS


@given(activities, waits)
@settings(max_examples=100, deadline=None)
def test_everybody_is_kept_by_some_root_and_each_is_told_why(acts: list[Activity], given_waits: list[Wait]) -> None:
    solution = solve(acts, given_waits)
    found = roots(solution, MOVES)
    assert {name for root in found for name in (*root.nodes, *root.waiters)} == set(solution.hope)
    for name in solution.hope:
        assert set(nodes(roots_of(solution, name))) == {root.nodes for root in found if name in (*root.nodes, *root.waiters)}


@given(activities, waits)
@settings(max_examples=100, deadline=None)
def test_levels_only_add_roots_and_order_does_not_matter(acts: list[Activity], given_waits: list[Wait]) -> None:
    shuffled = random.Random(len(given_waits))
    solution = solve(acts, given_waits)
    again = solve(shuffled.sample(acts, len(acts)), shuffled.sample(given_waits, len(given_waits)))
    least: set[tuple[str, ...]] = set()
    for level in Outlook:
        assert roots(again, level) == roots(solution, level)
        assert least <= set(nodes(roots(solution, level)))
        least = {root.nodes for root in roots(solution, level)}


def test_the_absent_rank_of_a_collective() -> None:
    waits_of_ranks = [wait(f"rank{i}", "all_reduce") for i in range(3)]
    given_waits = [wait("driver", "rank0"), *waits_of_ranks, wait("all_reduce", "rank3")]
    acts = stand(["driver", "rank0", "rank1", "rank2", "rank3", "all_reduce"])
    (root,) = roots(solve(acts, given_waits))
    assert (root.nodes, root.is_cycle, root.certainty) == (("rank3",), False, PROVEN)
    assert root.waiters == ("all_reduce", "rank0", "rank1", "rank2", "driver")
    assert way(root) == [("driver", "rank0"), ("rank0", "all_reduce"), ("all_reduce", "rank3")]
    absent = solve(acts[:4] + acts[5:], given_waits)
    assert roots(absent) == ()
    assert [(r.nodes, r.hope, r.certainty) for r in roots(absent, UNSEEN)] == [(("rank3",), UNSEEN, POSSIBLE)]


def test_a_ring_of_locks_is_closed_on_the_way() -> None:
    ring = [wait("a", "lock1"), wait("lock1", "b"), wait("b", "lock2"), wait("lock2", "a"), wait("driver", "b")]
    (root,) = roots(solve(stand(["a", "b", "driver", "lock1", "lock2"]), ring))
    assert (root.nodes, root.is_cycle, root.waiters) == (("a", "b", "lock1", "lock2"), True, ("driver",))
    assert way(root) == [("driver", "b"), ("b", "lock2"), ("lock2", "a"), ("a", "lock1"), ("lock1", "b")]


def test_who_waits_for_itself_is_a_ring_of_one() -> None:
    (root,) = roots(solve(stand("ab"), [wait("a", "a"), wait("b", "a")]))
    assert (root.nodes, root.is_cycle, way(root)) == (("a",), True, [("b", "a"), ("a", "a")])


def test_a_ring_that_also_waits_for_a_dead_process_is_a_root_of_its_own() -> None:
    solution = solve(stand(["a", "b", "dead"]), [wait("a", "b"), wait("b", "a"), wait("a", "dead")])
    assert nodes(roots(solution)) == [("a", "b"), ("dead",)]


def test_a_ring_that_would_open_is_none() -> None:
    solution = solve(stand(["a", "b", "dead"]), [wait("a", "b"), wait("b", "a", "dead")])
    assert nodes(roots(solution)) == [("dead",)]


def test_the_client_is_not_named_beside_its_server() -> None:
    given_waits = [wait("client", "handler1", "handler2"), wait("handler1", "lock"), wait("handler2", "lock"), wait("lock", "dead")]
    solution = solve(stand(["client", "handler1", "handler2", "lock", "dead"]), given_waits)
    assert nodes(roots_of(solution, "client")) == [("dead",)]


def test_the_unseen_worker_of_a_pool_leaves_it_possible() -> None:
    given_waits = [wait("driver", "worker1", "worker2"), wait("worker1", "dead")]
    solution = solve(stand(["driver", "worker1", "dead"]), given_waits)
    assert nodes(roots(solution)) == [("dead",)]
    assert roots(solution)[0].waiters == ("worker1",)
    assert [(r.nodes, r.hope, r.certainty) for r in roots_of(solution, "driver")] == [
        (("dead",), STANDS, POSSIBLE),
        (("worker2",), UNSEEN, POSSIBLE),
    ]


def test_a_sleeper_that_never_wakes_hides_nobody() -> None:
    solution = solve([activity("driver"), activity("poller", WAKES), activity("dead")], [wait("driver", "poller"), wait("poller", "dead")])
    assert roots(solution)[0].waiters == ()
    (root,) = roots(solution, WAKES)
    assert (root.nodes, root.waiters, root.certainty) == (("dead",), ("poller", "driver"), POSSIBLE)


def test_others_merely_wait_for_who_works() -> None:
    solution = solve([activity("driver"), activity("rank0", MOVES), activity("rank1", MOVES)], [wait("driver", "rank0"), wait("rank0", "rank1")])
    assert nodes(roots_of(solution, "driver")) == [("rank0",)]


def test_one_doubtful_waiter_does_not_make_the_others_doubtful() -> None:
    given_waits = [wait("a", "b"), wait("b", "dead"), wait("far", "a", certainty=POSSIBLE), wait("farther", "far")]
    solution = solve(stand(["a", "b", "far", "farther", "dead"]), given_waits)
    (root,) = roots(solution)
    assert (root.waiters, root.certainty, way(root)) == (("b", "a", "far", "farther"), PROVEN, [("a", "b"), ("b", "dead")])
    assert [r.certainty for r in roots_of(solution, "farther")] == [POSSIBLE]


def test_the_root_with_most_waiters_comes_first() -> None:
    assert nodes(roots(solve(stand("abcxy"), [wait("a", "x"), wait("b", "y"), wait("c", "y")]))) == [("y",), ("x",)]


def test_a_long_chain_needs_no_recursion() -> None:
    names = [f"n{i:06}" for i in range(50_000)]
    (root,) = roots(solve(stand(names), [wait(a, b) for a, b in pairwise(names)]))
    assert (root.nodes, len(root.chain)) == ((names[-1],), 49_999)


def test_the_absent_ranks_of_one_collective_share_their_waiters() -> None:
    """A list for each of thousands of absent ranks would need more memory than there is."""
    absent = [f"absent{i}" for i in range(100)]
    given_waits = [wait("all_reduce", name) for name in absent] + [wait(f"rank{i}", "all_reduce") for i in range(100)]
    first, *others = roots(solve(stand(["all_reduce", *absent, *(f"rank{i}" for i in range(100))]), given_waits))
    assert len(others) == 99
    assert all(root.waiters is first.waiters for root in others)


def test_who_has_somebody_that_moves_waits_for_nobody_else() -> None:
    acts = [activity("parent"), activity("busy", UNSEEN), activity("moving", MOVES)]
    found = roots(solve(acts, [wait("parent", "busy", "moving")]), MOVES)
    assert {root.nodes: root.waiters for root in found} == {("busy",): (), ("moving",): ("parent",)}
