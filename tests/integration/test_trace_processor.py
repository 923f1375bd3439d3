"""Traces of ours in Perfetto's real trace processor: counts, lengths, arrows and nesting exactly as generated, and no complaint."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from trace_engine import NoEngine, TraceEngine, assert_same, engine_folder
from traces import read_back, written

from ray_rl_debug.timeline.chrome import ChromeWriter
from ray_rl_debug.timeline.compose import make_timeline
from ray_rl_debug.timeline.load import load as load_files
from ray_rl_debug.timeline.model import Batch, Count, Frame, Instant, Span, Track

pytestmark = pytest.mark.integration

DATA = Path(__file__).parent.parent / "data" / "timeline"
S = 1_000_000_000
T0 = 1_790_000_000 * S
STACK = (Frame("main", "a.py", 1), Frame("f", "b.py", 2))
Load = Callable[[bytes], TraceEngine]


@pytest.fixture(scope="module")
def folder() -> Path:
    try:
        return engine_folder()
    except NoEngine as e:
        pytest.skip(str(e))


@pytest.fixture
def load(folder: Path) -> Iterator[Load]:
    opened: list[TraceEngine] = []

    def start(trace: bytes) -> TraceEngine:
        opened.append(TraceEngine(trace, folder))
        return opened[-1]

    yield start
    for engine in opened:
        engine.__exit__()


def rank(i: int, row: str = "tasks", kind: str = "span") -> Track:
    return Track(("cluster", f"node{i // 4}", "actor", f"actor/{i}", row), kind=kind)


def run_of_ranks() -> list[Batch]:
    """Twelve ranks on three nodes: steps with phases, an arrow per step from the driver, one rank stuck in the last step."""
    batches = []
    submits = []
    for i in range(12):
        spans = []
        for step in range(10):
            start = T0 + step * 10 * S + i * 1_000
            flow = (1 << 40) + step * 100 + i
            stuck = i == 7 and step == 9
            submits.append(Instant(start - 5_000, "submit train", "submit", (("step", step),), flows_out=(flow,)))
            spans.append(Span(start, None if stuck else start + 9 * S, "train", "task", (("step", step),), flows_in=(flow,)))
            spans.append(Span(start + S, start + 2 * S, "rollout", "phase"))
            spans.append(
                Span(start + 3 * S, None if stuck else start + 9 * S, "update", "phase", stack=(Frame("main", "a.py", 1), Frame("f", "b.py", 2)))
            )
        batches.append(Batch(rank(i), spans))
    batches.append(Batch(Track(("cluster", "driver", "submits"), kind="instant"), submits))
    gpu = Track(("cluster", "node0", "gpu 0 utilization"), kind="counter", unit="%")
    batches.append(Batch(gpu, [Count(T0 + k * S, float(k)) for k in range(100)]))
    return batches


def test_everything_arrives_exactly(load: Load) -> None:
    engine = load(written(run_of_ranks(), origin_ns=T0))
    assert engine.errors() == []
    assert engine.query("select name, count(*) n, sum(dur) total, min(dur) shortest from slice where dur != 0 group by name order by name") == [
        {"name": "rollout", "n": 120, "total": 120 * S, "shortest": S},
        {"name": "train", "n": 120, "total": 119 * 9 * S - 1, "shortest": -1},
        {"name": "update", "n": 120, "total": 119 * 6 * S - 1, "shortest": -1},
    ]
    assert engine.value("select count(*) from slice where dur = 0 and name = 'submit train'") == 120
    assert engine.value("select count(*) from flow") == 120
    arrows = "select sum(s.ts + 5000 = r.ts) from flow join slice s on s.id = slice_out join slice r on r.id = slice_in where r.name = 'train'"
    assert engine.value(arrows) == 120
    assert engine.query("select count(*) n, sum(value) total from counter") == [{"n": 100, "total": 4950.0}]


def test_times_are_calendar_times(load: Load) -> None:
    engine = load(written(run_of_ranks(), origin_ns=T0))
    assert engine.value("select to_realtime(min(ts)) from slice where name = 'train'") == T0


def test_the_tree_of_rows_is_cluster_node_role_rank(load: Load) -> None:
    engine = load(written(run_of_ranks(), origin_ns=T0))
    rows = engine.query(
        "select a.name leaf, b.name rank, c.name role, d.name node, e.name root from track a join track b on b.id = a.parent_id "
        "join track c on c.id = b.parent_id join track d on d.id = c.parent_id join track e on e.id = d.parent_id where a.name = 'tasks'"
    )
    assert sorted((r["root"], r["node"], r["role"], r["rank"]) for r in rows) == sorted(
        ("cluster", f"node{i // 4}", "actor", f"actor/{i}") for i in range(12)
    )


def test_overlapping_sessions_stay_exact(load: Load) -> None:
    track = rank(0, "sessions", "async")
    groups = [
        [Span(T0 + i * S // 10, T0 + i * S // 10 + 5 * S + i, f"session {i}"), Span(T0 + i * S // 10 + 7, T0 + i * S // 10 + 7 + S, "generate")]
        for i in range(300)
    ]
    engine = load(written([Batch(track, g) for g in groups], origin_ns=T0))
    assert engine.errors() == []
    found = {r["name"]: r["dur"] for r in engine.query("select name, dur from slice where name glob 'session*'")}
    assert found == {f"session {i}": 5 * S + i for i in range(300)}
    nested = "select count(*) from slice g join slice s on g.parent_id = s.id where g.name = 'generate' and g.dur = 1000000000 and g.ts = s.ts + 7"
    assert engine.value(nested) == 300


def test_stacks_arrive(load: Load) -> None:
    engine = load(written(run_of_ranks(), origin_ns=T0))
    assert engine.value("select count(*) from __intrinsic_track_event_callstacks") == 120
    assert {r["name"] for r in engine.query("select distinct name from stack_profile_frame")} >= {"main", "f"}


def test_chrome_form_arrives(load: Load) -> None:
    out = io.BytesIO()
    writer = ChromeWriter(out, origin_ns=T0 - S)
    batches = run_of_ranks()
    for batch in batches:
        writer.declare(batch.track)
    for batch in batches:
        writer.write(batch.track, batch.items)
    writer.close()
    engine = load(out.getvalue())
    assert engine.errors() == []
    assert engine.query("select name, count(*) n from slice where name in ('rollout', 'train', 'update') group by name order by name") == [
        {"name": "rollout", "n": 120},
        {"name": "train", "n": 120},
        {"name": "update", "n": 120},
    ]
    assert engine.value("select count(*) from slice where dur = -1") == 2
    assert engine.value("select count(*) from flow") == 120


def test_recorded_files_of_ray_verl_and_areal_arrive_exactly(load: Load, tmp_path: Path) -> None:
    path = tmp_path / "run.pftrace.gz"
    make_timeline(load_files([DATA]), path)
    assert_same(load(path.read_bytes()), read_back(gzip.decompress(path.read_bytes())))
