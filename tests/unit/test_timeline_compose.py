"""From snapshots and task events to a trace with its verdict, and what is dropped on the way. Expected values are written out."""

from __future__ import annotations

import gzip
import json
import urllib.request
from pathlib import Path

import msgspec
import pytest
from scenes import NODE_ID
from test_diagnose import straggler
from traces import ReadTrace, read_back

from ray_rl_debug.commands.cli import main
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model import codec
from ray_rl_debug.model.errors import OutputError, UsageError
from ray_rl_debug.model.snapshot import CollectiveEntry, FlightRecord, Gpu, NodeClock, Snapshot
from ray_rl_debug.ray_state.task_events import TaskEvent, TaskEvents
from ray_rl_debug.timeline import serve
from ray_rl_debug.timeline.accumulate import Accumulator
from ray_rl_debug.timeline.build import make_plan
from ray_rl_debug.timeline.compose import Inputs, make_timeline
from ray_rl_debug.timeline.live import live_inputs, save_beside
from ray_rl_debug.timeline.load import joined, load
from ray_rl_debug.timeline.model import Batch, Held, Span, Track
from ray_rl_debug.timeline.show import document, lines

S = 1_000_000_000


def stuck(at_s: float = 200.0) -> Snapshot:
    """The straggler of the rules' tests, its task known to run on its node."""
    found = straggler()
    assert found.ray is not None
    tasks = tuple(msgspec.structs.replace(t, node_id=NODE_ID, kind="ACTOR_TASK", actor_id="a") for t in found.ray.tasks)
    gpu = Gpu(index=0, uuid="u", name="H200", utilization_percent=1.0, memory_used_bytes=8 << 30, power_watts=90.0, pids=(100,))
    node = msgspec.structs.replace(found.nodes[0], started_time_s=at_s - 2, gpus=(gpu,), load1=0.5)
    return msgspec.structs.replace(found, nodes=(node,), ray=msgspec.structs.replace(found.ray, tasks=tasks), taken_time_s=at_s)


def made(inputs: Inputs, path: Path) -> ReadTrace:
    make_timeline(inputs, path)
    return read_back(path.read_bytes())


def test_a_hang_is_an_open_slice_from_the_start_of_the_stuck_task_with_its_findings(tmp_path: Path) -> None:
    read = made(Inputs((stuck(),)), tmp_path / "t.pftrace")
    (verdict,) = [s for s in read.slices if s.track == ("cluster", "verdict")]
    assert (verdict.start_ns, verdict.end_ns) == (150 * S, None)
    assert verdict.name.startswith("HANG: Trainer/2")
    assert verdict.args["certainty"] == "likely"
    assert verdict.args["drawn from"] == "start of the stuck task"
    assert verdict.args["finding 1"].startswith("RRD101 straggler (likely)")
    assert any(k.startswith("finding 1 evidence") for k in verdict.args)
    assert any(k.startswith("finding 1 remedy") for k in verdict.args)
    states = {s.track[3]: (s.name, s.end_ns) for s in read.slices if s.track[-1] == "state"}
    assert states == {
        "Trainer/0": ("WAITS: straggler", None),
        "Trainer/1": ("WAITS: straggler", None),
        "Trainer/2": ("CULPRIT: straggler", None),
    }
    (task,) = [s for s in read.slices if s.track[-1] == "tasks"]
    assert (task.name, task.start_ns, task.end_ns) == ("compute_reward", 150 * S, None)


def test_stacks_are_runs_of_one_place_with_the_full_stack(tmp_path: Path) -> None:
    read = made(Inputs((stuck(),)), tmp_path / "t.pftrace")
    waits = [s for s in read.slices if s.track[-2:] == ("Trainer/0", "stack (sampled)")]
    assert [(s.start_ns, s.end_ns) for s in waits] == [(198 * S, 200 * S)]
    assert waits[0].stack[-1] == "all_reduce torch/distributed/distributed_c10d.py:3200"
    sampled = [(s.name, s.start_ns, s.end_ns) for s in read.slices if s.track[-2:] == ("Trainer/0", "phase (sampled)")]
    assert sampled == [("reward", 198 * S, 200 * S)]
    busy = [(s.start_ns, s.stack[-1]) for s in read.slices if s.track[-2:] == ("Trainer/2", "stack (sampled)")]
    assert busy == [(198 * S, "normalize app/reward.py:9"), (199 * S, "normalize app/reward.py:10"), (200 * S, "normalize app/reward.py:9")]


def test_counters_of_nodes_gpus_and_processes(tmp_path: Path) -> None:
    read = made(Inputs((stuck(),)), tmp_path / "t.pftrace")
    found = {path[1:]: (at, value) for path, at, value in read.counts}
    assert found[("node1", "gpu 0 utilization")] == (200 * S, 1.0)
    assert found[("node1", "gpu 0 memory")] == (200 * S, 8.0)
    assert found[("node1", "load (1 min)")] == (200 * S, 0.5)
    assert found[("node1", "Trainer", "Trainer/2", "cpu")] == (198 * S, 95.0)


def test_verdicts_of_a_history_follow_each_other(tmp_path: Path) -> None:
    """The same verdict is one slice; snapshots stand as instants."""
    snapshots = tuple(stuck(at) for at in (200.0, 260.0, 320.0))
    read = made(Inputs(snapshots), tmp_path / "t.pftrace")
    assert [(s.start_ns, s.end_ns) for s in read.slices if s.track == ("cluster", "verdict")] == [(150 * S, None)]
    assert [(i.name, i.start_ns) for i in read.instants if i.track == ("cluster", "snapshots")] == [
        ("snapshot: hang", 200 * S),
        ("snapshot: hang", 260 * S),
        ("snapshot: hang", 320 * S),
    ]


def test_flight_records_of_a_snapshot_stand_at_their_process(tmp_path: Path) -> None:
    entry = CollectiveEntry(group="0", seq=7, op="nccl:all_reduce", state="started", created_time_s=151.0)
    snapshot = stuck()
    node = msgspec.structs.replace(snapshot.nodes[0], flight_records=(FlightRecord(source="fr", rank=0, pid=100, entries=(entry,)),))
    read = made(Inputs((msgspec.structs.replace(snapshot, nodes=(node,)),)), tmp_path / "t.pftrace")
    (found,) = read.named("all_reduce #7")
    assert (found.track[-2:], found.start_ns, found.end_ns) == (("Trainer/0", "collectives 0"), 151 * S, None)


def test_a_node_whose_clock_is_ahead_is_shifted_back_and_the_trace_says_how_far(tmp_path: Path) -> None:
    snapshot = msgspec.structs.replace(stuck(), clocks=(NodeClock(node="node1", at_time_s=200.0, ahead_s=5.0, bound_s=0.001),))
    read = made(Inputs((snapshot,)), tmp_path / "t.pftrace")
    (task,) = [s for s in read.slices if s.track[-1] == "tasks"]
    assert task.start_ns == 145 * S
    (note,) = [i for i in read.instants if i.name.startswith("clock wall:node1")]
    assert note.name == "clock wall:node1: ping of the node, within 1.0 ms"
    assert (note.args["offset_ms"], note.args["bound_ms"]) == (-5000.0, 1.0)


def many(count: int) -> Held:
    spans = [Span(k * 1000, k * 1000 + 1 + k % 100, "x") for k in range(count)]
    return Held("many", [Batch(Track(("cluster", "n", "r", "p", "tasks")), [*spans, Span(5, None, "open"), Span(7, 8, "arrow", flows_in=(1,))])])


def test_task_events_alone_reach_to_the_moment_they_were_read(tmp_path: Path) -> None:
    running = TaskEvent(task_id="t", name="Trainer.reward", kind="ACTOR_TASK", actor_id="a", node_id=NODE_ID, pid=1, times_ns={"RUNNING": 150 * S})
    read = made(Inputs(events=TaskEvents(read_time_s=500.0, events=(running,))), tmp_path / "t.pftrace")
    assert [(i.name, i.start_ns) for i in read.instants if i.track == ("cluster", "snapshots")] == [("task events read", 500 * S)]


def test_beyond_the_cap_the_shortest_go_and_the_trace_says_how_many(tmp_path: Path) -> None:
    path = tmp_path / "t.pftrace"
    timeline = make_timeline(Inputs(others=(lambda _: many(1000),)), path, max_slices=500)
    read = read_back(path.read_bytes())
    assert timeline.plan.slices == len(read.slices) == 372
    assert timeline.plan.dropped == 630
    assert {s.name for s in read.slices} == {"x", "open", "arrow"}
    (note,) = [i for i in read.instants if "dropped" in i.name]
    assert note.name == "630 slices shorter than 0.064 µs dropped of 1,002"
    assert any("630 slices shorter than" in line for line in lines(timeline))
    assert document(timeline)["trace"]["dropped"] == 630


def test_the_file_appears_when_it_is_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "t.pftrace.gz"
    make_timeline(Inputs((stuck(),)), path)
    assert read_back(gzip.decompress(path.read_bytes())).slices

    def broken(_: object) -> Held:
        held = many(10)
        held.batches = lambda: iter([Batch(Track(("a",)), [Span(1, 2, "x")]), *[1 / 0]])  # type: ignore[method-assign]
        return held

    with pytest.raises(ZeroDivisionError):
        make_timeline(Inputs(others=(broken,)), tmp_path / "no.pftrace")
    assert not (tmp_path / "no.pftrace").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        make_timeline(Inputs((stuck(),)), tmp_path / "file" / "t.pftrace")
    with pytest.raises(UsageError):
        make_timeline(Inputs((stuck(),)), None, format_="svg")


def test_beside_a_snapshot_nothing_raises(tmp_path: Path) -> None:
    said: list[str] = []
    snapshot = stuck()
    assert snapshot.ray is not None
    away = msgspec.structs.replace(snapshot, ray=msgspec.structs.replace(snapshot.ray, address="127.0.0.1:1"))

    def refuse(*_: object, **__: object) -> TaskEvents:
        raise ConnectionError("refused")

    inputs = live_inputs(away, None, read=refuse, second=lambda _: [], clock=lambda: 1.0)
    assert [g.what for g in inputs.gaps] == ["task events"]
    assert len(inputs.others) == 1
    (tmp_path / "file").write_text("")
    assert save_beside(tmp_path / "file", msgspec.structs.replace(away, ray=None), diagnose(away), progress=said.append) is None
    assert said[-1].startswith("no timeline: OutputError")


def test_the_history_of_a_companion_is_in_the_trace(tmp_path: Path) -> None:
    first, last = stuck(100.0), msgspec.structs.replace(stuck(200.0), ray=None)
    (tmp_path / "report.txt").write_text("HANG ...\n")
    (tmp_path / "report.html").write_text("page")
    timeline = save_beside(tmp_path, last, diagnose(last), earlier=[(first, diagnose(first))], others=[lambda _: many(3)])
    assert "HANG ...\n\n" in (tmp_path / "report.txt").read_text()
    assert "phases by step" in (tmp_path / "report.txt").read_text()
    page = (tmp_path / "report.html").read_text()
    assert "<h3>Phases by step <i>the last 1</i></h3>" in page
    assert timeline is not None
    read = read_back((tmp_path / "run.pftrace").read_bytes())
    assert [i.start_ns for i in read.instants if i.track == ("cluster", "snapshots")] == [100 * S, 200 * S]
    assert len(read.named("x")) == 3


def test_a_companions_folder_is_read_with_its_events_and_earlier_looks(tmp_path: Path) -> None:
    look = tmp_path / "2026-01-01T00-00-00Z"
    look.mkdir()
    first = stuck(100.0)
    (look / "snapshot.json.gz").write_bytes(codec.encode_compressed(first))
    (look / "report.json").write_bytes(codec.encode(diagnose(first)))
    broken = tmp_path / "2026-01-02T00-00-00Z"
    broken.mkdir()
    (broken / "snapshot.json.gz").write_bytes(b"\x1f\x8b cut")
    rows = [{"time_s": 50.0, "kind": "started", "text": "watching"}, {"time_s": 90.5, "kind": "look", "age_s": 40.0, "numbers": {"ranks": 3}}]
    (tmp_path / "history.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows) + '{"time_s": 9')
    (tmp_path / "learned.json").write_text("{}")
    last = msgspec.structs.replace(stuck(200.0), ray=None)
    here = tmp_path / "2026-01-03T00-00-00Z"
    here.mkdir()
    timeline = save_beside(here, last, diagnose(last), history=tmp_path)
    assert timeline is not None
    read = read_back((here / "run.pftrace").read_bytes())
    assert [(i.name, i.start_ns) for i in read.instants if i.track == ("cluster", "companion")] == [("started", 50 * S), ("look", 90_500_000_000)]
    assert (("cluster", "companion: since progress"), 90_500_000_000, 40.0) in read.counts
    assert [i.start_ns for i in read.instants if i.track == ("cluster", "snapshots")] == [100 * S, 200 * S]
    assert json.loads((here / "timeline.json").read_text())["schema"] == "rayrl-debug/timeline/1"
    assert [g.where for g in load([tmp_path]).gaps] == ["snapshot.json.gz"]


def test_snapshots_of_single_nodes_taken_together_are_one() -> None:
    one = msgspec.structs.replace(stuck(), ray=None)
    other = msgspec.structs.replace(one, nodes=(msgspec.structs.replace(one.nodes[0], name="node2"),), taken_time_s=230.0)
    later = msgspec.structs.replace(one, taken_time_s=900.0)
    assert [[n.name for n in s.nodes] for s in joined([later, other, one])] == [["node1", "node2"], ["node1"]]


def saved(folder: Path) -> Path:
    """A folder as ``snapshot -o`` leaves it."""
    events = (
        TaskEvent(task_id="t", name="Trainer.reward", kind="ACTOR_TASK", actor_id="a", node_id=NODE_ID, pid=102, times_ns={"RUNNING": 150 * S}),
    )
    folder.mkdir()
    (folder / "snapshot.json.gz").write_bytes(codec.encode_compressed(stuck()))
    (folder / "tasks.json.gz").write_bytes(codec.encode_compressed(TaskEvents(read_time_s=200.0, events=events)))
    (folder / "report.json").write_bytes(codec.encode(diagnose(stuck())))
    (folder / "report.txt").write_text("HANG")
    return folder


def test_command_offline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = saved(tmp_path / "hang"), tmp_path / "run.pftrace"
    (tmp_path / "foreign.json").write_text("{}")
    assert main(["timeline", str(folder), str(tmp_path / "foreign.json"), "-o", str(out)]) == 0
    shown = capsys.readouterr()
    assert "reward      1  50.0 s  50.0 s+" in shown.out
    assert "not seen  foreign.json: this file: not a trace or log that we read" in shown.out
    assert f"trace     {out}" in shown.out
    assert "ui.perfetto.dev" in shown.err
    assert read_back(out.read_bytes()).named("reward")[0].end_ns is None


def test_command_json_is_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["timeline", str(saved(tmp_path / "hang")), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "rayrl-debug/timeline/1"
    assert found["trace"]["path"] is None
    assert found["tables"]["phases"][0]["phase"] == "reward"
    assert found["tables"]["phases"][0]["unfinished"] == 1


def test_command_chrome_form(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    assert main(["timeline", str(saved(tmp_path / "hang")), "--format", "chrome", "-o", str(out), "-q"]) == 0
    events = json.loads(out.read_text())["traceEvents"]
    assert [e["ph"] for e in events if e["name"].startswith("HANG")] == ["B"]


@pytest.mark.parametrize("arguments", [["--open"], ["x", "--open", "--json", "-o", "y"], ["x", "--address", "a:1"]])
def test_command_wrong_usage(tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").write_text("")
    assert main(["timeline", *arguments]) == 2
    assert "error:" in capsys.readouterr().err


def test_serving_gives_one_file_to_one_page_by_a_name_nobody_can_guess(tmp_path: Path) -> None:
    path = tmp_path / "run.pftrace"
    path.write_bytes(b"trace")
    with serve.served(path, port=0) as (url, fetched):
        assert url.startswith("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:")
        local = url.partition("url=")[2]
        with pytest.raises(urllib.request.HTTPError), urllib.request.urlopen(local.rsplit("/", 2)[0] + "/run.pftrace", timeout=5):
            pass
        assert not fetched.is_set()
        with urllib.request.urlopen(local, timeout=5) as answer:
            assert answer.read() == b"trace"
            assert answer.headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
        assert fetched.wait(5)


def test_tables_need_one_reading_and_sources_are_read_twice() -> None:
    reads = 0

    class Counted(Held):
        def batches(self):  # type: ignore[no-untyped-def]
            nonlocal reads
            reads += 1
            return super().batches()

    make_plan([Counted("c", [])], pings={}, accumulator=Accumulator())
    assert reads == 1
