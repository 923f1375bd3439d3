"""AReaL, verl, Kineto and Flight Recorder files: whole, cut off, mixed up and foreign. Expected values are written out."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.snapshot import CollectiveEntry, FlightRecord
from ray_rl_debug.timeline.accumulate import Accumulator
from ray_rl_debug.timeline.build import make_plan
from ray_rl_debug.timeline.layout import Layout, TrackPlace
from ray_rl_debug.timeline.load import load
from ray_rl_debug.timeline.model import Batch, Instant, Source, Span
from ray_rl_debug.timeline.sources.areal_perf import ArealPerfSource
from ray_rl_debug.timeline.sources.areal_sessions import ArealSessionSource
from ray_rl_debug.timeline.sources.flight import flight_source
from ray_rl_debug.timeline.sources.kineto import KinetoSource
from ray_rl_debug.timeline.sources.verl_log import VerlLogSource

S = 1_000_000_000
MS = 1_000_000
T0 = 1_790_000_000


def layout() -> Layout:
    return Layout({}, {}, {})


def spans(source: Source, row: str | None = None) -> list[Span]:
    return [i for b in source.batches() if row is None or b.track.path[-1] == row for i in b.items if isinstance(i, Span)]


def reasons(source: Source) -> list[str]:
    return [g.reason for g in source.gaps]


# --- AReaL -----------------------------------------------------------------------------------------------------------


def event(name: str, ts: int, dur: int, *, pid: int = 50, rank: int = 0, **args: object) -> dict[str, object]:
    return {"name": name, "ph": "X", "ts": ts, "dur": dur, "pid": pid, "tid": pid, "cat": "compute", "args": {"rank": rank, "role": "actor", **args}}


def perf_file(folder: Path, rank: int, events: list[dict[str, object]], *, written_s: float | None = None, tail: str = "") -> Path:
    path = folder / "perf_tracer" / "actor" / f"traces-r{rank}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(e) + "\n" for e in events) + tail)
    if written_s is not None:
        os.utime(path, (written_s, written_s))
    return path


def test_areal_slices_phases_and_a_last_line_that_is_cut_off(tmp_path: Path) -> None:
    head = {"name": "thread_name", "ph": "M", "pid": 50, "tid": 50, "args": {"name": "MainThread"}}
    events = [head, event("train.ppo_update", 1000, 500, global_step=3), event("ppo_actor.ppo_update", 1100, 300)]
    source = ArealPerfSource(perf_file(tmp_path, 0, events, tail='{"name": "trai'), layout())
    assert [(s.name, s.start_ns, s.end_ns) for s in spans(source, "thread MainThread")] == [
        ("train.ppo_update", 1_000_000, 1_500_000),
        ("ppo_actor.ppo_update", 1_100_000, 1_400_000),
    ]
    assert [(s.phase, s.step, s.start_ns) for s in spans(source, "phase")] == [("update", 3, 1_000_000)]
    assert reasons(source) == ["the last line is cut off; the 3 before it were used"]


def test_areal_ranks_that_started_thirty_seconds_apart_are_put_together(tmp_path: Path) -> None:
    """Both count from their own beginning; both leave each weight update at the same moment, rank 1 up to 40 µs later."""
    name = "fsdp_engine.update_weights_from_distributed"
    sources: list[Source] = []
    for rank, late_s in ((0, 0), (1, 30)):
        length = 500_000 + 1_000 * rank
        rows = [event(name, (100 + 10 * k - late_s) * 1_000_000 - length, length + 10 * k * rank, rank=rank) for k in range(5)]
        sources.append(ArealPerfSource(perf_file(tmp_path, rank, rows, written_s=T0 + 141), layout()))
    plan = make_plan(sources, pings={}, accumulator=Accumulator())
    ends = [[plan.to_reference(b.track.clock, i.end_ns or 0) for b in s.batches() for i in b.items if isinstance(i, Span)] for s in sources]
    off = [abs(a - b) for a, b in zip(*ends, strict=True)]
    (bound,) = [a.bound_ns for a in plan.alignments.values() if a.bound_ns]
    assert max(off) <= bound == 120_000
    assert plan.alignments["areal actor/1 (pid 50)"].describe() == "5 shared events with areal actor/0 (pid 50), within 120 µs"
    assert ends[0][0] == pytest.approx((T0 + 101) * S, abs=MS)  # the file's time, as far as it can be known


def test_areal_origin_is_limited_by_the_processes_start_and_by_its_sessions(tmp_path: Path) -> None:
    events = [
        {"name": "batch_task_dispatcher.continously_submit", "ph": "i", "ts": 2_000_000, "pid": 50, "tid": 50},
        event("workflow_executor.prepare_batch", 2_000_000, 1_000_000),
    ]
    path = perf_file(tmp_path, 0, events, written_s=T0 + 100)
    place = TrackPlace(("cluster", "node1", "actor", "actor/0"), "actor/0", "wall:node1", "node1")
    known = Layout({("node1", 50): place}, {}, {}, {place.path: (T0 - 20) * S})
    source = ArealPerfSource(path, known)
    list(source.batches())
    (clock,) = source.clocks()
    assert (clock.node, clock.earliest_ns, clock.latest_ns) == ("node1", (T0 - 20) * S, (T0 + 97) * S)
    assert clock.evidence == "start of the process, time of the file"
    sessions = tmp_path / "session_tracer" / "actor" / "sessions-r0.jsonl"
    sessions.parent.mkdir(parents=True)
    sessions.write_text(json.dumps({"session_id": 0, "status": "accepted", "submit_ts": T0 + 2.25, "finalized_ts": T0 + 2.75}))
    (clock,) = source.clocks()
    assert (clock.earliest_ns, clock.latest_ns) == ((T0 - 1) * S + 750 * MS, T0 * S + 250 * MS)


def test_areal_file_of_two_runs_has_two_clocks(tmp_path: Path) -> None:
    source = ArealPerfSource(perf_file(tmp_path, 0, [event("a", 1, 1, pid=50), event("b", 1, 1, pid=60)]), layout())
    list(source.batches())
    assert [c.key for c in source.clocks()] == ["areal actor/0 (pid 50)", "areal actor/0 (pid 60)"]


def test_areal_lines_of_other_tools_are_counted(tmp_path: Path) -> None:
    source = ArealPerfSource(perf_file(tmp_path, 0, [event("a", 1, 1), {"ph": "X", "name": "no time", "pid": 1}, {"x": 1}]), layout())
    assert len(spans(source)) == 1
    assert reasons(source) == ["2 events are not AReaL's and were left out"]
    list(source.batches())
    assert len(source.gaps) == 1  # told once, though files are read twice


def test_areal_sessions_with_their_parts(tmp_path: Path) -> None:
    path = tmp_path / "session_tracer" / "rollout" / "sessions-r0.jsonl"
    path.parent.mkdir(parents=True)
    one = {
        "task_id": 4,
        "session_id": 9,
        "rank": 0,
        "role": "rollout",
        "status": "accepted",
        "submit_ts": T0 + 1.0,
        "finalized_ts": T0 + 3.0,
        "phases": {"generate": [{"start_ts": T0 + 1.5, "end_ts": T0 + 2.0}, {"start_ts": T0 + 2.0, "end_ts": None}], "reward": "odd"},
    }
    rows = [
        one,
        {"session_id": 2, "status": "rejected", "submit_ts": T0, "finalized_ts": None},
        {"session_id": 3, "submit_ts": 12.5, "finalized_ts": 13.0},
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    source = ArealSessionSource(path, layout())
    batches: list[Batch] = list(source.batches())
    assert [[(i.name, i.start_ns - T0 * S, i.end_ns and i.end_ns - T0 * S) for i in b.items if isinstance(i, Span)] for b in batches] == [
        [("session", S, 3 * S), ("generate", 1_500 * MS, 2 * S), ("generate", 2 * S, None)],
        [("session rejected", 0, None)],
    ]
    assert batches[0].track.path[-3:] == ("rollout", "rollout/0", "sessions")
    assert reasons(source) == ["1 lines are no sessions with Unix times and were left out"]


# --- verl ------------------------------------------------------------------------------------------------------------

CONSOLE = (
    "\x1b[36m(TaskRunnerV1 pid=7)\x1b[0m step:4 - actor/lr:1e-06 - num_turns/min:np.int32(2) - critic/score/mean:0.5 - "
    "timing_s/gen:2.0 - timing_s/agent_loop/slowest:1.9 - timing_s/old_log_prob:np.float64(0.25) - timing_s/update_actor:0.5 - "
    "timing_s/update_weights:0.125 - timing_s/step:3.0 - training/off_policy/trajectory_staleness/mean:1.5 - "
    "training/off_policy/trajectory_staleness/max:np.int64(2)\n"
)


def test_verl_console_lengths_are_exact_and_the_clock_says_that_moments_are_not(tmp_path: Path) -> None:
    path = tmp_path / "console.log"
    path.write_text("starting\n" + CONSOLE + "noise\n" + CONSOLE.replace("step:4", "step:5"))
    os.utime(path, (T0, T0))
    source = VerlLogSource(path, layout())
    assert [(s.name, s.phase, s.step, s.start_ns // MS, (s.end_ns or 0) // MS) for s in spans(source, "phase")][:4] == [
        ("gen", "rollout", 4, 0, 2000),
        ("old_log_prob", "logprob", 4, 2000, 2250),
        ("update_actor", "update", 4, 2250, 2750),
        ("update_weights", "weight_sync", 4, 2750, 2875),
    ]
    assert [(s.name, s.start_ns // S, (s.end_ns or 0) // S) for s in spans(source, "steps")] == [("step 4", 0, 3), ("step 5", 3, 6)]
    assert dict(spans(source, "steps")[0].args) == {"step": 4, "staleness_mean": 1.5, "staleness_max": 2.0, "score_mean": 0.5}
    (clock,) = source.clocks()
    assert (clock.is_relative, clock.earliest_ns, clock.latest_ns) == (True, None, (T0 - 6) * S)


def test_verl_file_logger_gives_the_same(tmp_path: Path) -> None:
    path = tmp_path / "cpu.jsonl"
    path.write_text(json.dumps({"step": 1, "data": {"timing_s/gen": 2.5, "timing_s/step": 3.0, "x": None}}) + '\n{"step": 2, "da')
    source = VerlLogSource(path, layout())
    assert [(s.name, s.end_ns) for s in spans(source, "phase")] == [("gen", 2_500 * MS)]
    assert reasons(source) == ["1 lines are damaged or cut off; the others were used"]


# --- Kineto ----------------------------------------------------------------------------------------------------------


def kineto(path: Path, *, base: int = T0 * S, shift_us: float = 0.0, packed: bool = False) -> Path:
    events = [
        {"ph": "M", "name": "thread_name", "pid": 900, "tid": 901, "args": {"name": "thread 901 (python)"}},
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 900, "tid": 901, "ts": 1000.5 + shift_us, "dur": 10000},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 900, "tid": 901, "ts": 2000.25 + shift_us, "dur": 10.125, "args": {"External id": 5}},
        {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0, "tid": 7, "ts": 3000 + shift_us, "dur": 500},
        {"ph": "X", "cat": "python_function", "name": "train.py(3): f", "pid": 900, "tid": 901, "ts": 1, "dur": 1},
        {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "x", "ts": 1, "dur": 1},
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 1},
    ]
    document = {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 4},
        "baseTimeNanoseconds": base,
        "traceEvents": events,
    }
    text = json.dumps(document).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_kineto_times_count_from_the_files_own_base(tmp_path: Path, packed: bool) -> None:
    source = KinetoSource(kineto(tmp_path / ("t.json" + ".gz" * packed), packed=packed), layout())
    assert [(s.name, s.start_ns - T0 * S, (s.end_ns or 0) - s.start_ns) for s in spans(source)] == [
        ("ProfilerStep#3", 1_000_500, 10_000_000),
        ("aten::mm", 2_000_250, 10_125),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 3_000_000, 500_000),
    ]
    assert sorted({b.track.path[2:] for b in source.batches()}) == [
        ("profiler", "rank 3 (pid 900)", "GPU 0 stream 7"),
        ("profiler", "rank 3 (pid 900)", "thread 901 (python)"),
    ]
    assert reasons(source) == ["1 events of Python frames and of the profiler itself were left out"]


def test_kineto_without_base_has_unix_microseconds(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(json.dumps({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 900, "tid": 1, "ts": T0 * 1e6, "dur": 5}]}))
    assert spans(KinetoSource(path, layout()))[0].start_ns == T0 * S


def test_kineto_collectives_tie_the_nodes_together(tmp_path: Path) -> None:
    early = KinetoSource(kineto(tmp_path / "host-a_900.1.pt.trace.json"), layout())
    late = KinetoSource(kineto(tmp_path / "host-b_900.1.pt.trace.json", base=(T0 + 5) * S, shift_us=70), layout())
    for source in (early, late):
        list(source.batches())
    (a,), (b,) = early.shared_ends(), late.shared_ends()
    assert a.event == b.event == "step 3 kernel allreduce 1"
    assert (a.clock, b.clock) == ("wall:node host-a", "wall:node host-b")
    assert b.at_ns - a.at_ns == 5 * S + 70_000
    plan = make_plan([early, late], pings={}, accumulator=Accumulator())
    assert plan.alignments["wall:node host-b"].offset_ns == -5 * S - 70_000
    assert plan.alignments["wall:node host-b"].describe() == "1 shared event with wall:node host-a, error unknown"
    assert plan.alignments["wall:node host-a"].describe() == "unaligned: shown as recorded"


# --- Flight Recorder -------------------------------------------------------------------------------------------------


def test_flight_recorder_entries_end_are_open_or_only_known_to_have_been_enqueued() -> None:
    def entry(seq: int, state: str, **more: float) -> CollectiveEntry:
        return CollectiveEntry(group="0", seq=seq, op="nccl:all_reduce", state=state, created_time_s=float(seq), input_sizes=((2, 3),), **more)

    record = FlightRecord(
        source="dump",
        rank=2,
        groups={"0": (0, 1, 2)},
        group_descriptions={"0": "default_pg"},
        entries=(entry(1, "completed", completed_time_s=1.5), entry(2, "completed"), entry(3, "started", started_time_s=3.25), entry(4, "scheduled")),
    )
    source = flight_source("dump", [record], layout())
    batches = list(source.batches())
    assert [(i.name, i.start_ns, i.end_ns) for i in batches[0].items if isinstance(i, Span)] == [
        ("all_reduce #1", S, 1_500 * MS),
        ("all_reduce #3", 3_250 * MS, None),
        ("all_reduce #4", 4 * S, None),
    ]
    assert [(i.name, i.at_ns) for i in batches[1].items if isinstance(i, Instant)] == [("all_reduce #2", 2 * S)]
    assert batches[0].track.path == ("cluster", "unknown node", "collectives", "rank 2", "collectives default_pg")
    assert [(e.clock, e.event, e.at_ns) for e in source.shared_ends()] == [("wall:node of rank 2", "0 0,1,2 all_reduce 1", 1_500 * MS)]


def test_flight_recorders_of_ranks_on_unknown_nodes_are_tied_by_their_collectives() -> None:
    def record(rank: int, ahead_s: float) -> FlightRecord:
        entries = tuple(
            CollectiveEntry(group="0", seq=k, op="nccl:all_reduce", state="completed", created_time_s=k + ahead_s, completed_time_s=k + 0.5 + ahead_s)
            for k in range(1, 5)
        )
        return FlightRecord(source=f"rank_{rank}", rank=rank, groups={"0": (0, 1)}, entries=entries)

    source = flight_source("dumps", [record(0, 0.0), record(1, 12.5)], layout())
    plan = make_plan([source], pings={}, accumulator=Accumulator())
    assert {k: a.offset_ns // MS for k, a in plan.alignments.items() if k != "wall"} == {"wall:node of rank 0": 0, "wall:node of rank 1": -12_500}
    assert plan.alignments["wall:node of rank 1"].describe() == "4 shared events with wall:node of rank 0, within 100 µs"


# --- files and folders -----------------------------------------------------------------------------------------------


def test_a_folder_of_everything_uses_what_it_can_and_says_one_line_for_the_rest(tmp_path: Path) -> None:
    perf_file(tmp_path, 0, [event("train.rollout", 1, 1)])
    kineto(tmp_path / "k.json")
    (tmp_path / "console.log").write_text(CONSOLE)
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "foreign.json").write_text('{"hello": 1}')
    (tmp_path / "fr.json").write_text(json.dumps({"version": "2.10", "pg_config": {}, "entries": [], "comm_lib_version": "2.0"}))
    (tmp_path / "half.json.gz").write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * 100_000)[:60])
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "run.pftrace").write_bytes(b"\x0a\x00")
    found = load([tmp_path])
    assert len(found.others) == 4
    assert [(g.where, g.reason) for g in found.gaps] == [
        ("empty.json", "empty"),
        ("foreign.json", "not a trace or log that we read"),
        ("half.json.gz", "empty"),
    ]


def test_nothing_usable_is_an_error_that_says_why(tmp_path: Path) -> None:
    path = tmp_path / "run.pftrace"
    path.write_bytes(b"\x0a\x00")
    with pytest.raises(UnreadableFileError, match=r"nothing usable: run\.pftrace: it is a trace of ours; a trace is made from other files"):
        load([path])
