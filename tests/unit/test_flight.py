"""Flight Recorder dumps of a world compared: each kind of trouble, and each reason to accuse nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flights import as_json, dump, entry

from ray_rl_debug.analyze.flight import FlightResult, match
from ray_rl_debug.formats.flight_recorder import parse
from ray_rl_debug.model.snapshot import FlightRecord

ALL4 = {"0": (0, 1, 2, 3)}


def records(by_rank: Mapping[int, dict[str, Any]]) -> list[FlightRecord]:
    return [parse(as_json(plain), f"rank{rank}", rank=rank) for rank, plain in by_rank.items()]


def matched(by_rank: Mapping[int, Sequence[dict[str, Any]]], groups: dict[str, Sequence[int]] | None = ALL4, **more: Any) -> FlightResult:
    return match(records({rank: dump(entries, groups=groups, **more) for rank, entries in by_rank.items()}))


def done(*seqs: int, **more: Any) -> list[dict[str, Any]]:
    return [entry(s, **more) for s in seqs]


def test_the_rank_that_has_not_joined_is_named() -> None:
    waiting = [*done(1, 2), entry(3, done=False)]
    result = matched({0: waiting, 1: waiting, 2: done(1, 2), 3: waiting})
    (root,) = result.roots
    assert (root.kind, root.culprits, root.waiting, root.op, root.seq) == ("missing", (2,), (0, 1, 3), "nccl:all_reduce", 3)
    assert root.since_time_s == 1_795_000_003.0


def test_no_rank_is_right_by_its_number() -> None:
    waiting = [*done(1), entry(2, "all_gather", done=False)]
    result = matched({0: [*done(1), entry(2, "all_reduce", done=False)], 1: waiting, 2: waiting, 3: waiting})
    assert (result.roots[0].kind, result.culprits) == ("type", (0,))
    assert result.roots[0].votes == (("nccl:all_gather", (1, 2, 3)), ("nccl:all_reduce", (0,)))


def test_sizes_and_dtypes_differ() -> None:
    ok = [entry(1, done=False)]
    assert matched({0: ok, 1: [entry(1, done=False, size=8)], 2: ok, 3: ok}).roots[0].kind == "size"
    dtype = matched({0: ok, 1: ok, 2: ok, 3: [entry(1, done=False, dtype="BFloat16")]})
    assert (dtype.roots[0].kind, dtype.culprits) == ("dtype", (3,))


def test_a_tie_accuses_nobody_and_shows_both_sides() -> None:
    one, other = [entry(1, done=False)], [entry(1, "barrier", done=False)]
    result = matched({0: one, 1: other, 2: one, 3: other})
    assert (result.roots[0].undecided, result.culprits, len(result.roots[0].votes)) == (True, (), 2)


def test_lacking_dumps_may_turn_the_vote() -> None:
    one, other = [entry(1, done=False)], [entry(1, "barrier", done=False)]
    result = matched({0: one, 1: other, 2: one})
    assert (result.roots[0].undecided, result.culprits) == (True, ())


def test_all_present_is_the_network_or_a_device() -> None:
    started = [entry(1, done=False)]
    assert matched(dict.fromkeys(range(4), started)).roots[0].kind == "network"
    result = matched({**dict.fromkeys(range(3), started), 3: [entry(1, done=False, state="scheduled")]})
    assert (result.roots[0].kind, result.culprits) == ("device", (3,))


def test_a_missing_dump_is_unknown_and_never_accused() -> None:
    waiting = [*done(1), entry(2, done=False)]
    result = matched({0: waiting, 1: waiting, 2: waiting})
    assert (result.groups[0].kind, result.groups[0].unknown, result.culprits) == ("unknown", (3,), ())
    # ... and with somebody absent beside it, that one alone is named
    assert matched({0: waiting, 1: waiting, 2: done(1)}).culprits == (2,)


def test_older_entries_are_overwritten_on_some_ranks() -> None:
    kept = [*done(90, 91), entry(92, done=False)]
    everything = [*done(*range(1, 92)), entry(92, done=False)]
    late = match(
        records(
            {
                0: dump(kept, groups=ALL4, first_record=89),
                1: dump(everything, groups=ALL4),
                2: dump(done(*range(1, 92)), groups=ALL4),
                3: dump(kept, groups=ALL4, first_record=89),
            }
        )
    )
    assert (late.roots[0].kind, late.culprits, late.roots[0].seq) == ("missing", (2,), 92)


def test_a_rank_whose_entries_of_the_group_are_all_overwritten_is_unknown() -> None:
    waiting = [*done(1), entry(2, done=False)]
    other: dict[str, Sequence[int]] = {"0": (0, 1, 2, 3), "5": (2,)}
    lost = dump([entry(n, group="5", desc="own") for n in range(700, 720)], groups=other, first_record=699)
    result = match(records({0: dump(waiting, groups=ALL4), 1: dump(waiting, groups=ALL4), 2: lost, 3: dump(waiting, groups=other)}))
    world = next(g for g in result.groups if g.name == "0")
    assert (world.kind, world.unknown, world.culprits) == ("unknown", (2,), ())


def test_dumps_of_different_moments_accuse_nobody() -> None:
    early = [*done(1, 2), entry(3, done=False)]
    later = [*done(1, 2, 3, 4), entry(5, done=False)]
    result = matched({0: early, 1: later, 2: done(1, 2), 3: later})
    assert (result.moving, result.culprits, result.groups) == (True, (), ())


def test_two_sets_of_dumps_tell_moving_from_stuck() -> None:
    before = records({r: dump([*done(1), entry(2, done=False)], groups=ALL4) for r in range(3)} | {3: dump(done(1), groups=ALL4)})
    after = records({r: dump([*done(1, 2), entry(3, done=False)], groups=ALL4) for r in range(3)} | {3: dump(done(1, 2), groups=ALL4)})
    assert match(after, before).moving is True
    stuck = match(before, before)
    assert (stuck.moving, stuck.culprits) == (False, (3,))


def test_receives_in_a_ring() -> None:
    by_rank = {r: [entry(1, f"recv {r}<-{(r + 1) % 3}", p2p=True, done=False)] for r in range(3)}
    result = matched(by_rank, {"0": (0, 1, 2)})
    (root,) = result.roots
    assert (root.kind, root.culprits, root.pairs) == ("p2p", (0, 1, 2), ((0, 1), (1, 2), (2, 0)))


def test_a_chain_of_receives_ends_at_the_rank_that_sends_nothing() -> None:
    by_rank = {0: done(1), 1: [entry(1), entry(1, "recv 1<-0", p2p=True, done=False)], 2: [entry(1), entry(1, "recv 2<-1", p2p=True, done=False)]}
    assert matched(by_rank, {"0": (0, 1, 2)}).culprits == (0,)


def test_a_stage_that_sends_one_less_and_goes_on_to_a_collective() -> None:
    by_rank = {0: [entry(1, done=False)], 1: [entry(1, "recv 1<-0", p2p=True, done=False)]}
    (root,) = matched(by_rank, {"0": (0, 1)}).roots
    assert (root.kind, root.culprits, root.waiting, root.pairs) == ("p2p", (0,), (1,), ((1, 0),))


def test_a_send_that_waits_for_its_receiver_has_a_partner() -> None:
    by_rank = {0: [entry(1, "send 0->1", p2p=True, done=False)], 1: [entry(1, "recv 1<-0", p2p=True, done=False)]}
    assert matched(by_rank, {"0": (0, 1)}).groups == ()


def test_the_trouble_is_followed_to_the_group_where_it_begins() -> None:
    groups: dict[str, Sequence[int]] = {"0": (0, 1, 2, 3), "1": (1, 2)}
    world = [*done(1), entry(2, done=False)]
    by_rank = {
        0: world,
        1: [*done(1), entry(1, group="1", desc="tp", done=False)],
        2: done(1),
        3: world,
    }
    result = matched(by_rank, groups)
    assert [g.name for g in result.roots] == ["1"]
    assert result.culprits == (2,)


def test_gloo_writes_neither_states_nor_members() -> None:
    waiting = [*done(1, 2, backend="gloo"), entry(3, backend="gloo", done=False)]
    result = matched({0: waiting, 1: done(1, 2, backend="gloo"), 2: waiting}, None)
    assert (result.roots[0].kind, result.culprits) == ("missing", (1,))


def test_all_to_all_is_told_by_its_sum_alone() -> None:
    by_rank = {0: [entry(1, "all_to_all", size=4, out=4, done=False)], 1: [entry(1, "all_to_all", size=6, out=4, done=False)]}
    (root,) = matched(by_rank, {"0": (0, 1)}).roots
    assert (root.kind, root.undecided, root.culprits) == ("size", True, ())


def test_dumps_that_claim_one_rank_are_left_out_and_named() -> None:
    pair = records({0: dump(done(1)), 1: dump(done(1))})
    result = match([pair[0], pair[0], pair[1]])
    assert len(result.unusable) == 2
