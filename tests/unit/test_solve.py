"""The law of waiting: hope and how sure it is that somebody stands, against the slow law and by example."""

from __future__ import annotations

import random
from itertools import chain, pairwise

import pytest
from graphs_of_waits import activities, activity, disbelieve, slow_hope, stand, standing_sets, wait, waits
from hypothesis import given, settings

from ray_rl_debug.analyze.solve import Activity, Outlook, Wait, solve
from ray_rl_debug.model.report import Certainty

STANDS, UNSEEN, WAKES, MOVES = Outlook
PROVEN, LIKELY, POSSIBLE = Certainty.PROVEN, Certainty.LIKELY, Certainty.POSSIBLE


@given(activities, waits)
@settings(max_examples=200, deadline=None)
def test_hope_is_the_least_fixpoint(acts: list[Activity], given_waits: list[Wait]) -> None:
    assert solve(acts, given_waits).hope == slow_hope(acts, given_waits)


@given(activities, waits)
@settings(max_examples=100, deadline=None)
def test_who_has_no_hope_is_in_a_set_that_only_itself_could_free(acts: list[Activity], given_waits: list[Wait]) -> None:
    hope = solve(acts, given_waits).hope
    assert {name for name in hope if hope[name] is STANDS} == set(chain(*standing_sets(acts, given_waits)))


@given(activities, waits)
@settings(max_examples=100, deadline=None)
def test_proven_is_what_stands_even_if_all_less_certain_is_disbelieved(acts: list[Activity], given_waits: list[Wait]) -> None:
    certainty = solve(acts, given_waits).certainty
    for doubted, believed in (({LIKELY, POSSIBLE}, {PROVEN}), ({POSSIBLE}, {PROVEN, LIKELY}), (set(), {PROVEN, LIKELY, POSSIBLE})):
        hope = slow_hope(*disbelieve(acts, given_waits, doubted))
        assert {name for name, sure in certainty.items() if sure in believed} == {name for name in hope if hope[name] is STANDS}


@given(activities, waits)
@settings(max_examples=100, deadline=None)
def test_the_order_of_the_input_does_not_matter(acts: list[Activity], given_waits: list[Wait]) -> None:
    solution = solve(acts, given_waits)
    shuffled = random.Random(len(given_waits))
    again = solve(shuffled.sample(acts, len(acts)), shuffled.sample(given_waits, len(given_waits)))
    assert again == solution
    assert list(again.keeping) == list(solution.keeping)


@given(activities, waits)
@settings(max_examples=100, deadline=None)
def test_a_missing_fact_takes_hope_from_nobody_who_had_any(acts: list[Activity], given_waits: list[Wait]) -> None:
    hope = solve(acts, given_waits).hope
    for missing in acts:
        left = [a for a in acts if a is not missing]
        for known_waits in (given_waits, [w for w in given_waits if w.waiter != missing.id]):
            less = solve(left, known_waits).hope
            assert {name for name in less if less[name] is STANDS} <= {name for name in hope if hope[name] is STANDS}


@given(activities, waits)
@settings(max_examples=100, deadline=None)
def test_hope_never_rises_along_the_waits_that_keep_somebody(acts: list[Activity], given_waits: list[Wait]) -> None:
    solution = solve(acts, given_waits)
    for name, kept_by in solution.keeping.items():
        assert all(solution.hope[other] <= solution.hope[name] for w in kept_by for other in w.any_of)
        assert kept_by or solution.hope[name] is solution.activities[name].outlook


@pytest.mark.parametrize(
    ("outlooks", "given_waits", "hope"),
    [
        ({"a": STANDS}, [], STANDS),
        ({"a": STANDS, "b": MOVES}, [wait("a", "b")], MOVES),
        ({"a": STANDS, "b": WAKES}, [wait("a", "b")], WAKES),
        ({"a": STANDS}, [wait("a", "nobody saw it")], UNSEEN),
        ({"a": STANDS}, [wait("a")], STANDS),
        ({"a": STANDS, "b": MOVES, "c": STANDS}, [wait("a", "b", "c")], MOVES),
        ({"a": STANDS, "b": MOVES, "c": STANDS}, [wait("a", "b"), wait("a", "c")], STANDS),
        ({"a": STANDS, "b": MOVES, "c": WAKES}, [wait("a", "b"), wait("a", "c")], WAKES),
        ({"a": STANDS, "b": WAKES}, [wait("a", "b", "unseen")], WAKES),
        ({"a": STANDS, "b": STANDS}, [wait("a", "b"), wait("b", "a")], STANDS),
        ({"a": STANDS, "b": STANDS, "c": MOVES}, [wait("a", "b"), wait("b", "a", "c")], MOVES),
        ({"a": STANDS}, [wait("a", "a")], STANDS),
        # a time limit: the better of the clock and the waits
        ({"a": WAKES, "b": MOVES}, [wait("a", "b")], MOVES),
        ({"a": WAKES, "b": STANDS}, [wait("a", "b")], WAKES),
        # a missing fact neither heals nor accuses
        ({"a": UNSEEN, "b": MOVES}, [wait("a", "b")], UNSEEN),
        ({"a": UNSEEN, "b": STANDS}, [wait("a", "b")], UNSEEN),
        ({"a": MOVES, "b": STANDS}, [wait("a", "b")], MOVES),
    ],
)
def test_small_cases(outlooks: dict[str, Outlook], given_waits: list[Wait], hope: Outlook) -> None:
    assert solve([activity(name, outlook) for name, outlook in outlooks.items()], given_waits).hope["a"] is hope


def test_one_certain_reason_to_stand_is_enough_and_an_uncertain_way_out_is_doubted() -> None:
    both = solve(stand("abc"), [wait("a", "b", certainty=POSSIBLE), wait("a", "c")])
    assert both.certainty == {"a": PROVEN, "b": PROVEN, "c": PROVEN}
    either = solve(stand("abcd"), [wait("a", "b", "c"), wait("c", "d", certainty=LIKELY)])
    assert either.certainty == {"a": LIKELY, "b": PROVEN, "c": LIKELY, "d": PROVEN}


def test_a_ring_is_as_sure_as_its_weakest_wait() -> None:
    ring = solve(stand("abc"), [wait("a", "b"), wait("b", "c", certainty=LIKELY), wait("c", "a")])
    assert set(ring.certainty.values()) == {LIKELY}


def test_time_alone_makes_it_possible() -> None:
    assert solve([activity("a"), activity("b", certainty=POSSIBLE)], [wait("a", "b")]).certainty == {"a": POSSIBLE, "b": POSSIBLE}


def test_of_two_accounts_of_one_activity_the_more_hopeful_counts() -> None:
    assert solve([activity("a", MOVES), activity("a")], []).hope == {"a": MOVES}


def test_a_long_chain_needs_no_recursion() -> None:
    names = [f"n{i:06}" for i in range(50_000)]
    waits_down = [wait(a, b) for a, b in pairwise(names)]
    assert set(solve([*stand(names[:-1]), activity(names[-1], MOVES)], waits_down).hope.values()) == {MOVES}
