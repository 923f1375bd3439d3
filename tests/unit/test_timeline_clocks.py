"""Clocks: what pings, limits and shared events say, and what is not shifted. Expected values are written out."""

from __future__ import annotations

from ray_rl_debug.model.snapshot import NodeClock
from ray_rl_debug.timeline.clocks import align
from ray_rl_debug.timeline.model import Clock, SharedEnd

S = 1_000_000_000
MS = 1_000_000


def ping(node: str, at_time_s: float, ahead_s: float, bound_s: float = 0.0004) -> NodeClock:
    return NodeClock(node=node, at_time_s=at_time_s, ahead_s=ahead_s, bound_s=bound_s)


def test_a_node_that_is_ahead_is_taken_back_by_as_much() -> None:
    found = align([], {"b": [ping("b", 100.0, 1.25)]}, [], ["a", "b"])
    assert found["wall:b"].to_reference(1000 * S) == 1000 * S - 1250 * MS
    assert found["wall:b"].bound_ns == 400_000
    assert found["wall:b"].describe() == "ping of the node, within 400 µs"


def test_of_several_nodes_one_without_ping_is_shown_as_recorded_and_says_so() -> None:
    found = align([], {"b": [ping("b", 100.0, 0.1)]}, [], ["a", "b"])
    assert found["wall:a"].offset_ns == 0
    assert not found["wall:a"].is_aligned
    assert found["wall:a"].describe() == "unaligned: shown as recorded"


def test_one_node_alone_needs_no_ping() -> None:
    assert align([], {}, [], ["a"])["wall:a"].bound_ns == 0


def test_two_syncs_give_drift_only_beyond_their_bounds() -> None:
    drifting = align([], {"b": [ping("b", 100.0, 0.0), ping("b", 200.0, 0.01)]}, [], ["a", "b"])["wall:b"]
    assert drifting.drift_ppb == -100_000
    assert drifting.to_reference(200 * S + 10 * MS) == 200 * S - 1000  # 10 ms of the clock's own drift count as well
    steady = align([], {"b": [ping("b", 100.0, 0.0), ping("b", 200.0, 0.0006)]}, [], ["a", "b"])["wall:b"]
    assert steady.drift_ppb == 0
    better = align([], {"b": [ping("b", 100.0, 0.0, 0.01), ping("b", 200.0, 0.002, 0.0001)]}, [], ["a", "b"])["wall:b"]
    assert (better.offset_ns, better.bound_ns) == (-2 * MS, 100_000)


def relative(key: str, earliest: int | None, latest: int | None, node: str | None = "a") -> Clock:
    return Clock(key, node, True, earliest, latest, "start of the process, end of the file")


def test_an_unwritten_origin_lies_in_the_middle_of_its_limits() -> None:
    found = align([relative("p", 100 * S, 102 * S)], {}, [], ["a"])["p"]
    assert (found.offset_ns, found.bound_ns) == (101 * S, 1 * S)


def test_one_limit_alone_places_it_and_claims_no_bound() -> None:
    found = align([relative("p", None, 102 * S)], {}, [], ["a"])["p"]
    assert (found.offset_ns, found.bound_ns) == (102 * S, None)
    assert found.describe() == "start of the process, end of the file (latest possible), error unknown"


def test_limits_that_contradict_each_other_are_not_averaged() -> None:
    found = align([relative("p", 105 * S, 102 * S)], {}, [], ["a"])["p"]
    assert (found.offset_ns, found.bound_ns) == (102 * S, None)


def test_shared_ends_tie_two_origins_thirty_seconds_apart() -> None:
    clocks = [relative("p", 100 * S, 101 * S), relative("q", 129 * S, 132 * S)]
    ends = [SharedEnd("p", f"sync {i}", (40 + i) * S) for i in range(5)] + [SharedEnd("q", f"sync {i}", (10 + i) * S + i * 10_000) for i in range(5)]
    found = align(clocks, {}, ends, ["a"])
    assert found["p"].offset_ns == 100 * S + 500 * MS
    assert found["q"].offset_ns == 130 * S + 500 * MS - 20_000
    assert found["q"].bound_ns == 120_000
    assert found["q"].describe() == "5 shared events with p, within 120 µs"


def test_shared_events_that_contradict_the_limits_are_not_used() -> None:
    clocks = [relative("p", 100 * S, 101 * S), relative("q", 200 * S, 201 * S)]
    ends = [SharedEnd(k, f"sync {i}", i * S) for k in ("p", "q") for i in range(3)]
    found = align(clocks, {}, ends, ["a"])
    assert found["q"].offset_ns == 200 * S + 500 * MS
    assert "3 shared events disagree and were not used" in found["q"].describe()


def test_one_shared_event_places_but_promises_nothing() -> None:
    found = align([relative("p", 100 * S, 101 * S), relative("q", None, None)], {}, [SharedEnd("p", "x", 5 * S), SharedEnd("q", "x", 2 * S)], ["a"])
    assert (found["q"].offset_ns, found["q"].bound_ns) == (103 * S + 500 * MS, None)


def test_a_chain_of_shared_events_reaches_those_who_share_none_with_the_anchor() -> None:
    clocks = [relative("p", 100 * S, 100 * S), relative("q", None, None), relative("r", None, None)]
    ends = [SharedEnd(k, e, at) for k, e, at in (("p", "x", 5), ("p", "y", 6), ("q", "x", 1), ("q", "y", 2), ("q", "z", 3), ("r", "z", 0))]
    found = align(clocks, {}, ends, ["a"])
    assert found["q"].offset_ns == 100 * S + 4
    assert found["r"].offset_ns == 100 * S + 7


def test_many_ranks_with_jitter_are_aligned_far_better_than_by_their_pings() -> None:
    names = [f"n{i}" for i in range(16)]
    pings = {n: [ping(n, 0.0, 0.0, 0.001)] for n in names}
    skews = {n: (i * 37 % 16 - 8) * 50_000 for i, n in enumerate(names)}
    ends = [
        SharedEnd(f"wall:{n}", f"all_reduce {k}", k * S + skews[n] + (i * 7 + k * 13) % 11 * 9_000) for i, n in enumerate(names) for k in range(50)
    ]
    found = align([], pings, ends, names)
    errors = [found[f"wall:{n}"].offset_ns + skews[n] for n in names]
    assert max(errors) - min(errors) < 100_000
