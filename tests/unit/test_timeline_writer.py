"""The Perfetto writer and the Chrome writer, read back: each trap of Perfetto's importer has its test."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
from traces import read_back, written

from ray_rl_debug.timeline.chrome import ChromeWriter
from ray_rl_debug.timeline.encode import varint
from ray_rl_debug.timeline.model import Batch, Count, Frame, Instant, Span, Track

ROW = Track(("cluster", "node1", "actor", "actor/0", "tasks"))
S = 1_000_000_000
MS = 1_000_000
T0 = 1_790_000_000 * S


def test_slices_come_back_with_times_names_and_arguments() -> None:
    spans = [
        Span(10 * S, 20 * S, "step", "rl", (("step", 1), ("loss", 0.5), ("ok", True), ("who", "actor/0"))),
        Span(11 * S, 12 * S, "gen"),
        Span(12 * S, 20 * S, "update"),
        Span(30 * S, 30 * S + 7, "short"),
    ]
    read = read_back(written([Batch(ROW, spans)]))
    assert [(s.name, s.start_ns, s.end_ns, s.depth) for s in read.slices] == [
        ("step", 10 * S, 20 * S, 0),
        ("gen", 11 * S, 12 * S, 1),
        ("update", 12 * S, 20 * S, 1),
        ("short", 30 * S, 30 * S + 7, 0),
    ]
    assert read.slices[0].args == {"step": 1, "loss": 0.5, "ok": True, "who": "actor/0"}
    assert read.slices[0].track == ROW.path


def test_an_unfinished_span_stays_open_and_the_finished_ones_in_it_end() -> None:
    read = read_back(written([Batch(ROW, [Span(S, None, "stuck"), Span(2 * S, 3 * S, "inner"), Span(4 * S, None, "ray.get")])]))
    assert [(s.name, s.end_ns) for s in read.slices] == [("stuck", None), ("inner", 3 * S), ("ray.get", None)]


def test_overlapping_spans_go_to_lanes_of_one_row_because_an_end_closes_the_innermost() -> None:
    spans = [Span(i * S, (i + 5) * S, f"session {i}") for i in range(8)]
    data = written([Batch(Track(ROW.path, kind="async"), [s]) for s in spans])
    read = read_back(data)
    assert sorted((s.name, s.start_ns, s.end_ns) for s in read.slices) == [(s.name, s.start_ns, s.end_ns) for s in spans]
    rows = [t for t in read.tracks.values() if t.name == "tasks"]
    assert len(rows) == 5  # at most five at once, and a lane is used again
    assert len({t.sibling_merge_key_int for t in rows}) == 1


def test_groups_of_an_async_track_nest_among_themselves() -> None:
    track = Track(ROW.path, kind="async")
    one = [Span(S, 9 * S, "session 1"), Span(2 * S, 3 * S, "generate"), Span(3 * S, 4 * S, "reward")]
    two = [Span(2 * S, 8 * S, "session 2"), Span(2 * S, 5 * S, "generate")]
    read = read_back(written([Batch(track, one), Batch(track, two)]))
    assert sorted((s.name, s.start_ns, s.end_ns, s.depth) for s in read.slices) == [
        ("generate", 2 * S, 3 * S, 1),
        ("generate", 2 * S, 5 * S, 1),
        ("reward", 3 * S, 4 * S, 1),
        ("session 1", S, 9 * S, 0),
        ("session 2", 2 * S, 8 * S, 0),
    ]


def test_ranks_of_one_name_are_not_merged_and_rows_keep_their_order() -> None:
    tracks = [Track(("cluster", "node1", role, f"{role}/0", "tasks")) for role in ("reward", "actor", "critic")]
    read = read_back(written([Batch(t, [Span(S, 2 * S, "x")]) for t in tracks]))
    roles = [t for t in read.tracks.values() if t.name in ("reward", "actor", "critic")]
    assert [(t.name, t.sibling_order_rank) for t in roles] == [("reward", 0), ("actor", 1), ("critic", 2)]
    node = next(t for t in read.tracks.values() if t.name == "node1")
    assert node.child_ordering == node.EXPLICIT
    assert all(t.sibling_merge_behavior == t.SIBLING_MERGE_BEHAVIOR_NONE for t in roles)


def test_arrows_and_stacks_stand_in_the_event_itself() -> None:
    submit = Instant(S, "submit", flows_out=(7, 1 << 63))
    run = Span(2 * S, 3 * S, "run", flows_in=(7,), stack=(Frame("main", "app.py", 3), Frame("step", "train.py", 40)))
    read = read_back(written([Batch(Track(("cluster", "submits"), kind="instant"), [submit]), Batch(ROW, [run])]))
    assert read.instants[0].flows_out == (7, 1 << 63)
    assert read.slices[0].flows_in == (7,)
    assert read.slices[0].stack == ("main app.py:3", "step train.py:40")


def test_counters_have_a_unit_and_late_ones_keep_their_time() -> None:
    track = Track(("cluster", "node1", "gpu 0 memory"), kind="counter", unit="GiB")
    read = read_back(written([Batch(track, [Count(5 * S, 1.5), Count(3 * S, 2.5)]), Batch(track, [Count(4 * S, -1.0)])]))
    assert [(at, value) for _, at, value in read.counts] == [(3 * S, 2.5), (5 * S, 1.5), (4 * S, -1.0)]
    described = next(t for t in read.tracks.values() if t.name == "gpu 0 memory")
    assert described.counter.unit_name == "GiB"
    assert described.counter.y_axis_share_key == "GiB"


def test_what_an_alignment_adds_is_added_to_every_time() -> None:
    read = read_back(written([Batch(ROW, [Span(S, 2 * S, "x"), Span(3 * S, None, "y")])], offset_ns=S))
    assert [(s.start_ns, s.end_ns) for s in read.slices] == [(2 * S, 3 * S), (4 * S, None)]


def test_batches_that_come_out_of_order_lose_nothing() -> None:
    batches = [Batch(ROW, [Span(at * S, (at + 1) * S, f"s{at}")]) for at in (5, 1, 3, 2, 4)]
    read = read_back(written(batches))
    assert sorted((s.name, s.start_ns, s.end_ns) for s in read.slices) == [(f"s{at}", at * S, (at + 1) * S) for at in (1, 2, 3, 4, 5)]


def test_a_span_that_ends_before_it_began_has_no_length() -> None:
    read = read_back(written([Batch(ROW, [Span(5 * S, 4 * S, "clock jumped"), Span(6 * S, 7 * S, "next")])]))
    assert [(s.name, s.start_ns, s.end_ns) for s in read.slices] == [("clock jumped", 5 * S, 5 * S), ("next", 6 * S, 7 * S)]


def test_more_than_perfetto_draws_goes_to_another_lane() -> None:
    spans = [Span(i, 10_000 - i, "deep") for i in range(600)]
    read = read_back(written([Batch(ROW, spans)]))
    assert len(read.slices) == 600
    assert max(s.depth for s in read.slices) < 255


def test_each_sequence_begins_with_its_state_cleared_and_names_are_told_once() -> None:
    trace = Trace()
    trace.ParseFromString(written([Batch(ROW, [Span(k * S, k * S + 5, f"name {k % 3}", "rl") for k in range(1, 50)])]))
    packets = [p for p in trace.packet if p.HasField("track_event") or p.HasField("interned_data") or p.HasField("trace_packet_defaults")]
    flags = [p.sequence_flags for p in packets]
    assert (flags[0], set(flags[1:])) == (1, {2})
    told = [e.name for p in packets for e in p.interned_data.event_names]
    assert told == ["name 1", "name 2", "name 0"]
    clocks = [(c.clock_id, c.timestamp) for p in trace.packet for c in p.clock_snapshot.clocks][:2]
    assert clocks == [(1, 1_000), (6, 1_000)]  # wall time is boot time: one clock


def test_a_slice_takes_few_bytes() -> None:
    """Measured on 1,000 ranks with 1,000 slices each: 40 bytes; beginnings of rows weigh more in this small one."""
    names = ("rollout", "reward", "old_log_prob", "update_actor", "update_weights")
    batches = []
    for rank in range(20):
        spans = [Span(T0 + i * 3 * MS, T0 + i * 3 * MS + 2 * MS, names[i % 5], "rl", (("step", i // 5),)) for i in range(1000)]
        batches.append(Batch(Track(("cluster", "node1", "actor", f"actor/{rank}", "phase")), spans))
    assert len(written(batches, origin_ns=T0)) / 20_000 <= 45


def test_odd_names_and_values_are_kept_or_cut() -> None:
    odd = Span(S, 2 * S, "a\x00b\ud800 ü", args=(("big", 1 << 70), ("negative", -5), ("long", "x" * 10_000)))
    read = read_back(written([Batch(ROW, [odd])]))
    assert read.slices[0].name == "a\x00b? ü"
    assert read.slices[0].args["big"] == str(1 << 70)
    assert read.slices[0].args["negative"] == -5
    assert len(read.slices[0].args["long"]) == 2000


@pytest.mark.parametrize("n", [0, 127, 128, 16383, 16384, (1 << 28) - 1, 1 << 28, 1 << 42, (1 << 64) - 1])
def test_varints(n: int) -> None:
    data, found = varint(n), 0
    for i, byte in enumerate(data):
        found |= (byte & 127) << 7 * i
        assert bool(byte & 128) == (i < len(data) - 1)
    assert found == n


SPANS = st.lists(
    st.tuples(st.integers(0, 60), st.one_of(st.none(), st.integers(0, 40)), st.sampled_from("abc")),
    max_size=40,
).map(lambda rows: [Span(S + a, None if d is None else S + a + d, n) for a, d, n in rows])


@settings(max_examples=150, deadline=None)
@given(st.lists(SPANS, max_size=4), st.sampled_from(["span", "async"]))
def test_any_spans_come_back_exactly(groups: list[list[Span]], kind: str) -> None:
    track = Track(ROW.path, kind=kind)
    read = read_back(written([Batch(track, g) for g in groups]))
    wanted = sorted((s.name, s.start_ns, -1 if s.end_ns is None else s.end_ns) for g in groups for s in g)
    assert sorted((s.name, s.start_ns, -1 if s.end_ns is None else s.end_ns) for s in read.slices) == wanted


def chrome(*batches: Batch) -> list[dict[str, object]]:
    out = io.BytesIO()
    writer = ChromeWriter(out, origin_ns=S)
    for batch in batches:
        writer.declare(batch.track)
    for batch in batches:
        writer.write(batch.track, batch.items)
    writer.close()
    events: list[dict[str, object]] = json.loads(out.getvalue())["traceEvents"]
    return [e for e in events if e["ph"] != "M"]


def test_chrome_times_are_microseconds_from_the_beginning() -> None:
    assert chrome(Batch(ROW, [Span(S + 1500, S + 4000, "x", "rl", (("a", 1),))])) == [
        {"ph": "X", "name": "x", "pid": 1, "tid": 1, "ts": 1.5, "cat": "rl", "args": {"a": 1}, "dur": 2.5}
    ]


def test_chrome_overlap_never_shares_a_row_and_async_groups_have_ids() -> None:
    crossing = [Span(S, S + 2000, "a"), Span(S + 1000, S + 3000, "b")]
    assert [(e["name"], e["tid"]) for e in chrome(Batch(ROW, crossing))] == [("a", 1), ("b", 2)]
    track = Track(ROW.path, kind="async")
    events = chrome(Batch(track, [crossing[0]]), Batch(track, [crossing[1]]))
    assert [(e["ph"], e["name"], e["id"]) for e in events] == [("b", "a", "0x1"), ("e", "a", "0x1"), ("b", "b", "0x2"), ("e", "b", "0x2")]


def test_chrome_unfinished_begins_without_end() -> None:
    assert [e["ph"] for e in chrome(Batch(ROW, [Span(S, None, "stuck")]))] == ["B"]
