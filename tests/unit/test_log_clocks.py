"""Logs of many ranks whose clocks, zones, stamps and files differ: the first failure in time, and how far each rank came."""

from __future__ import annotations

import gzip
from datetime import datetime, timedelta, timezone
from pathlib import Path

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.log_story import LogStory

START = datetime(2026, 2, 3, 9, 58, tzinfo=timezone.utc)
RAISED = 'Traceback (most recent call last):\n  File "/opt/job/train.py", line 88, in <module>\n    adv = norm(batch)\n{}\n'
LOST = "ConnectionResetError: [Errno 104] Connection reset by peer"


def at(seconds: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return (START + timedelta(seconds=seconds)).strftime(form)


def steps(count: int, *, ahead_s: float = 0.0, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return "".join(f"{at(12 * i + ahead_s, form)} INFO step {i} loss {1 / i:.3f}\n" for i in range(1, count + 1))


def story(folder: Path, files: dict[str, str | bytes]) -> LogStory:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    found = load([folder]).snapshot
    assert found is not None
    told = diagnose(found).story
    assert told is not None
    return told


def last(told: LogStory) -> dict[int | None, float | None]:
    return {p.who.rank: p.step for p in told.progress}


def test_a_machine_an_hour_and_some_seconds_ahead(tmp_path: Path) -> None:
    off = 3617.0
    files: dict[str, str | bytes] = {f"a/rank_{r}.log": steps(40) for r in (0, 1)} | {f"b/rank_{r}.log": steps(40, ahead_s=off) for r in (2, 3)}
    files["b/rank_2.log"] = f"{files['b/rank_2.log']!s}{at(485 + off)} ERROR step failed\n{RAISED.format('ValueError: no spread')}"
    files["a/rank_1.log"] = f"{files['a/rank_1.log']!s}{at(492)} ERROR a hook failed\n{RAISED.format('RuntimeError: bucket 3 is not there')}"
    told = story(tmp_path, files)
    assert told.first is not None and (told.first.who[0].rank, told.first.text) == (2, "ValueError: no spread")
    assert {round(abs(c.shift_s)) for c in told.clocks} == {3617}
    assert last(told) == {0: 40, 1: 40, 2: 40, 3: 40}


def test_a_rank_without_any_stamp(tmp_path: Path) -> None:
    plain = "".join(f"step {i} loss 0.5\n" for i in range(1, 40)) + RAISED.format("KeyError: 'old_log_probs'")
    others = {f"rank_{r}.log": f"{steps(40)}{at(487)} ERROR peer gone\n{RAISED.format(LOST)}" for r in (0, 1, 3)}
    told = story(tmp_path, {"rank_2.log": plain, **others})
    assert told.first is not None and (told.first.who[0].rank, told.first.text) == (2, "KeyError: 'old_log_probs'")
    assert last(told) == {0: 40, 1: 40, 2: 39, 3: 40}
    assert told.order is not None


def test_a_rank_that_counts_milliseconds_since_1970(tmp_path: Path) -> None:
    counted = "".join(f"{int((START + timedelta(seconds=12 * i)).timestamp() * 1000)} INFO step {i} loss 0.5\n" for i in range(1, 21))
    denied = f"{int((START + timedelta(seconds=245)).timestamp() * 1000)} ERROR PermissionError: [Errno 13] Permission denied: '/data/7'\n"
    utc = "%Y-%m-%dT%H:%M:%SZ"
    missed = f"{steps(20, form=utc)}{at(276, utc)} ERROR RuntimeError: the batch of rank 1 did not come\n"
    told = story(tmp_path, {"rank_0.log": missed, "rank_1.log": counted + denied, "rank_2.log": steps(20, form=utc)})
    assert told.first is not None and told.first.who[0].rank == 1 and told.clocks == ()
    assert told.first.time == "2026-02-03 10:02:05.0"
    assert last(told) == {0: 20, 1: 20, 2: 20}


def test_two_zones_that_no_stamp_names(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"x/rank_{r}.log": steps(30) for r in (0, 1)} | {f"y/rank_{r}.log": steps(30, ahead_s=9 * 3600) for r in (2, 3)}
    failed = RAISED.format("RuntimeError: CUDA error: an illegal memory access was encountered")
    files["y/rank_3.log"] = f"{files['y/rank_3.log']!s}{at(364 + 9 * 3600)} ERROR in the optimizer\n{failed}"
    files["x/rank_0.log"] = f"{files['x/rank_0.log']!s}{at(380)} ERROR in a hook\n{RAISED.format('RuntimeError: bucket 3 is not there')}"
    told = story(tmp_path, files)
    assert told.first is not None and told.first.who[0].rank == 3
    assert last(told) == {0: 30, 1: 30, 2: 30, 3: 30}


def test_parts_of_one_log(tmp_path: Path) -> None:
    rows = steps(91).splitlines(keepends=True)
    failed = f"{at(1084)} ERROR rollout raised\n{RAISED.format('IndexError: index 4096 is out of bounds')}"
    files: dict[str, str | bytes] = {
        "rank_0.log.1.gz": gzip.compress("".join(rows[:90]).encode()),
        "rank_0.log": f"{rows[90]}{at(1690)} ERROR TimeoutError: no batch of rank 1\n",
        "rank_1.log.2.gz": gzip.compress("".join(rows[:50]).encode()),
        "rank_1.log.1": "".join(rows[50:90]) + failed,
        "rank_1.log": f"{at(1724)} WARNING received SIGTERM\n",
    }
    told = story(tmp_path, files)
    assert told.first is not None and told.first.who[0].rank == 1 and told.first.text.startswith("IndexError")
    assert last(told) == {0: 91, 1: 90} and told.order is None


def test_parts_without_stamps_come_in_any_order(tmp_path: Path) -> None:
    rows = [f"step {i} loss 0.5\n" for i in range(1, 31)]
    told = story(tmp_path, {"rank_0.log": "".join(rows[20:]), "rank_0.log.1": "".join(rows[:20]), "rank_1.log": "".join(rows)})
    assert last(told) == {0: 30, 1: 30}


def test_a_packed_part_that_was_not_read_is_told(tmp_path: Path) -> None:
    told = story(tmp_path, {"rank_0.log": f"{steps(9)}{RAISED.format(LOST)}", "rank_1.log.1.zst": b"\x28\xb5\x2f\xfd\x00\x00broken"})
    assert told.order == "rank_1.log.1.zst was not read"
