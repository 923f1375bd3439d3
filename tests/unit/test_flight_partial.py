"""gloo's dumps do not name the members of a group: some of them alone must not pass for all ranks."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import ALL_REDUCE, EXECUTOR, MAIN, Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause
from ray_rl_debug.model.snapshot import CollectiveEntry, FlightRecord, Snapshot

UPDATE = f"Trainer.step@app/trainer.py:40 Trainer.update_policy@app/trainer.py:20 {EXECUTOR} {MAIN}"
READS = f"read@app/data.py:7 {UPDATE}"
SIZE = 4


def run(*dumped: int, size: int | None) -> Snapshot:
    """Ranks 0 to 2 wait in all_reduce, rank 3 reads a file; those in `dumped` have a recorder."""
    stacks = Stacks()
    texts = [f"{ALL_REDUCE} {UPDATE}"] * 3 + [READS]
    found = [process(stacks, 100 + i, "ray::Trainer.update_policy", t, rank=i, size=size) for i, t in enumerate(texts)]
    if size is None:
        found = [replace(p, env_now={k: v for k, v in (p.env_now or {}).items() if k != "WORLD_SIZE"}) for p in found]
        found = [replace(p, env=p.env_now or {}) for p in found]
    done = CollectiveEntry(group="0", seq=1, op="gloo:all_reduce", state="scheduled", retired=True, created_time_s=150.0)
    waits = CollectiveEntry(group="0", seq=2, op="gloo:all_reduce", state="scheduled", retired=False, created_time_s=151.0)
    records = tuple(
        FlightRecord(source=f"fr_{i}", rank=i, pid=100 + i, entries=(done,) if i == 3 else (done, waits), taken_time_s=200.0, first_record=0)
        for i in dumped
    )
    return snapshot(replace(stacks.node(found), flight_records=records))


@pytest.mark.parametrize("size", [SIZE, None])
@pytest.mark.parametrize("dumped", [(), (0, 1), (0, 1, 2), (0, 1, 2, 3)])
def test_the_rank_outside_is_named_whatever_dumps_there_are(dumped: tuple[int, ...], size: int | None) -> None:
    report = diagnose(run(*dumped, size=size))
    assert [(f.cause, [w.rank for w in f.who]) for f in report.findings] == [(Cause.STRAGGLER, [3])]
