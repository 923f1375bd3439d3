"""Files that real Ray, verl and AReaL wrote (``tests/data/timeline``): read whole, cut off at any place, and mixed up."""

from __future__ import annotations

import gzip
import random
import shutil
from pathlib import Path

import pytest
from traces import ReadTrace, read_back

from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.timeline.compose import Timeline, make_timeline
from ray_rl_debug.timeline.load import load

DATA = Path(__file__).parent.parent / "data" / "timeline"
STARTED_APART_NS = 36_786_525_406
"""Two AReaL tracers: what their processes themselves said of the moments they were made, by the wall clock of the machine both ran on."""


def made(tmp_path: Path, *names: str) -> tuple[Timeline, ReadTrace]:
    path = tmp_path / "t.pftrace"
    timeline = make_timeline(load([DATA / n for n in names]), path)
    return timeline, read_back(path.read_bytes())


def test_areal_ranks_that_started_half_a_minute_apart_are_aligned_within_the_bound(tmp_path: Path) -> None:
    timeline, read = made(tmp_path, "areal/perf_tracer/actor")
    first, second = (timeline.plan.alignments[k] for k in sorted(timeline.plan.alignments) if k.startswith("areal"))
    assert second.describe() == "8 shared events with areal actor/0 (pid 13413), within 767 µs"
    error_ns = second.offset_ns - first.offset_ns - STARTED_APART_NS
    assert abs(error_ns) < 10_000 < (second.bound_ns or 0)
    ends: dict[str, list[int]] = {}
    for s in read.named("fsdp_engine.update_weights_from_distributed"):
        ends.setdefault(s.track[3], []).append(s.end_ns or 0)
    off = [abs(a - b) for a, b in zip(*ends.values(), strict=True)]
    assert len(off) == 8
    assert max(off) <= (second.bound_ns or 0)


def test_areal_rollouts_place_their_process(tmp_path: Path) -> None:
    timeline, read = made(tmp_path, "areal/perf_tracer/rollout", "areal/session_tracer")
    assert timeline.plan.alignments["areal rollout/0 (pid 3088)"].describe() == "its first accepted session, its first session, within 9.1 ms"
    rollouts = read.named("train.rollout")
    accepted = [s for s in read.named("session") if s.end_ns is not None]
    assert (len(rollouts), len(accepted)) == (3, 12)
    assert rollouts[0].start_ns - 9_100_000 <= min(s.start_ns for s in accepted)
    assert [(r.step, r.phase) for r in timeline.tables.phases] == [(s, p) for s in range(3) for p in ("rollout", "update")]


def test_ray_timeline_of_a_verl_run(tmp_path: Path) -> None:
    timeline, read = made(tmp_path, "ray_timeline_verl.json.gz")
    assert timeline.gaps == ()
    assert len({s.track[3] for s in read.named("actor_rollout_update_actor")}) == 2
    assert {r.phase for r in timeline.tables.phases if r.step == 2} == {"logprob", "reward", "rollout", "update", "weight_sync"}


@pytest.mark.parametrize("name", ["verl_console.log", "verl_file_logger.jsonl"])
def test_verl_logs_agree(tmp_path: Path, name: str) -> None:
    timeline, read = made(tmp_path, name)
    assert [(s.name, (s.end_ns or 0) - s.start_ns) for s in read.slices if s.track[-1] == "steps"] == [
        ("step 1", 11_856_358_441),
        ("step 2", 2_781_671_511),
        ("step 3", 2_514_362_376),
    ]
    assert [(r.step, r.mean, r.most) for r in timeline.tables.staleness] == [(1, 0.0, 0.0), (2, 1.0, 1.0), (3, 2.0, 2.0)]


def test_all_of_it_at_once(tmp_path: Path) -> None:
    timeline, read = made(tmp_path, ".")
    assert len(timeline.plan.sources) == 7
    assert timeline.gaps == ()
    assert len(read.slices) == timeline.plan.slices


def test_cut_off_anywhere_nothing_raises_and_what_is_lost_is_told(tmp_path: Path) -> None:
    chance = random.Random(7)
    for source in sorted(p for p in DATA.rglob("*") if p.is_file()):
        whole = source.read_bytes()
        for at in [0, 1, len(whole) - 1, *(chance.randrange(len(whole)) for _ in range(6))]:
            folder = tmp_path / f"{source.stem}-{at}"
            path = folder / source.relative_to(DATA)
            path.parent.mkdir(parents=True)
            path.write_bytes(whole[:at])
            try:
                timeline = make_timeline(load([path]), None)
            except UnreadableFileError as e:
                assert str(e).startswith("nothing usable: ")  # noqa: PT017 one of both is right
                continue
            is_whole_line = whole[:at].endswith(b"\n") or whole[at : at + 1] == b"\n"
            assert timeline.gaps or is_whole_line or source.suffix == ".log", path
            shutil.rmtree(folder)


def test_mixed_up_names_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "traces-r0.jsonl").write_bytes((DATA / "verl_file_logger.jsonl").read_bytes())
    (tmp_path / "console.log").write_bytes((DATA / "areal" / "session_tracer" / "rollout" / "sessions-r0.jsonl").read_bytes())
    (tmp_path / "timeline.json").write_bytes(gzip.decompress((DATA / "ray_timeline_verl.json.gz").read_bytes()))
    timeline = make_timeline(load([tmp_path]), None)
    assert {r.step for r in timeline.tables.staleness} == {1, 2, 3}
    assert [r.count for r in timeline.tables.rollout if r.name == "session"] == [12]
    assert timeline.gaps == ()
