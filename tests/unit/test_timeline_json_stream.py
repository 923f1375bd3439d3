"""Large JSON files read object by object: whole, cut off, damaged and foreign."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from ray_rl_debug.timeline.sources import json_stream
from ray_rl_debug.timeline.sources.json_stream import read_objects

EVENTS = [{"name": f"e{i}", "ts": i, "args": {"text": "x]}\n" * 3}} for i in range(50)]


def read(path: Path) -> tuple[list[object], list[str]]:
    said: list[str] = []
    return list(read_objects(path, said.append)), said


@pytest.fixture(params=[1 << 20, 64], ids=["one chunk", "many chunks"])
def chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(json_stream, "CHUNK_CHARS", request.param)
    return int(request.param)


@pytest.mark.parametrize("form", ["array", "object", "lines"])
@pytest.mark.parametrize("packed", [False, True])
def test_whole_files(tmp_path: Path, chunks: int, form: str, packed: bool) -> None:
    head = '{"traceEvents": [' if form == "object" else "["
    text = "\n".join(json.dumps(e) for e in EVENTS) if form == "lines" else head + ",\n".join(json.dumps(e) for e in EVENTS) + "]"
    text += ', "other": 1}' if form == "object" else ""
    path = tmp_path / "t.json"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert read(path) == (EVENTS, [])


def test_a_last_line_that_is_cut_off_costs_itself_only(tmp_path: Path, chunks: int) -> None:
    text = "\n".join(json.dumps(e) for e in EVENTS)
    path = tmp_path / "t.jsonl"
    path.write_text(text[:-10])
    assert read(path) == (EVENTS[:-1], ["the last line is cut off; the 49 before it were used"])


def test_damaged_lines_in_between(tmp_path: Path, chunks: int) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1}\n{"b"\n\n[1]\n{"c": 3}\n')
    assert read(path) == ([{"a": 1}, {"c": 3}], ["2 of 4 lines are damaged; the others were used"])


def test_an_array_that_is_cut_off(tmp_path: Path, chunks: int) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(EVENTS)[:-20])
    assert read(path) == (EVENTS[:-1], ["cut off or damaged after 49 events, which were used"])
    path.write_text(json.dumps(EVENTS)[:-1])
    assert read(path) == (EVENTS, ["cut off after 50 events, which were used"])


def test_gzip_data_that_ends_too_early(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    packed = gzip.compress(json.dumps([{"n": i, "x": str(hash(str(i)))} for i in range(200_000)]).encode())
    path.write_bytes(packed[: len(packed) // 2])
    found, said = read(path)
    assert 1_000 < len(found) < 200_000
    assert len(said) == 1
    assert "cut off" in said[0]


def test_what_stands_before_the_events_may_be_long(tmp_path: Path, chunks: int) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"groups": [list(range(1000))] * 100, "traceEvents": EVENTS}, indent=1))
    assert read(path) == (EVENTS, [])


def test_entries_that_are_no_events(tmp_path: Path, chunks: int) -> None:
    path = tmp_path / "t.json"
    path.write_text('[1, {"a": 1}, null, "x"]')
    assert read(path) == ([{"a": 1}], ["3 entries that are no events were left out"])


def test_an_empty_array_and_a_file_that_is_not_there(tmp_path: Path, chunks: int) -> None:
    path = tmp_path / "t.json"
    path.write_text("[]")
    assert read(path) == ([], [])
    assert read(tmp_path / "none.json") == ([], ["cannot be read: No such file or directory"])
