"""Flight Recorder dumps as files: JSON, pickle, hostile and broken ones."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from flights import as_json, dump, entry
from hypothesis import given
from hypothesis import strategies as st

from ray_rl_debug.collect.flight_recorder import read_flight_files
from ray_rl_debug.formats.flight_recorder import parse, rank_of_name
from ray_rl_debug.model.errors import UnreadableFileError

PLAIN = dump([entry(1), entry(2, done=False)], groups={"0": (0, 1)}, first_record=5)


@pytest.mark.parametrize("data", [as_json(PLAIN), pickle.dumps(PLAIN, protocol=2), pickle.dumps(PLAIN)])
def test_both_forms_say_the_same(data: bytes) -> None:
    record = parse(data, "x", rank=1, taken_time_s=7.0)
    assert (record.rank, record.groups, record.first_record, record.enqueued, record.taken_time_s) == (1, {"0": (0, 1)}, 5, {"0": 2}, 7.0)
    assert [(e.seq, e.op, e.state, e.retired, e.input_sizes) for e in record.entries] == [
        (1, "nccl:all_reduce", "completed", True, ((4,),)),
        (2, "nccl:all_reduce", "started", False, ((4,),)),
    ]


def test_a_rank_in_the_dump_wins_over_the_name_of_the_file() -> None:
    assert parse(as_json(dump([entry(1)], rank=3)), "x", rank=1).rank == 3


@pytest.mark.parametrize(
    ("name", "rank"), [("nccl_trace_rank_12", 12), ("rank3.json", 3), ("trace_0", 0), ("comm_lib_trace_rank_7.pkl", 7), ("notes", None)]
)
def test_rank_of_a_name(name: str, rank: int | None) -> None:
    assert rank_of_name(name) == rank


class Hostile:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/rayrl-debug-was-here",)


def test_bad_files_are_one_sentence_each_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "rank_0").write_bytes(pickle.dumps(PLAIN))
    (tmp_path / "rank_1").write_bytes(pickle.dumps({"entries": [Hostile()]}))
    (tmp_path / "rank_2").write_bytes(as_json(PLAIN)[:-20])
    (tmp_path / "rank_3").write_bytes(pickle.dumps(PLAIN)[:-30])
    (tmp_path / "rank_4").write_bytes(b'{"hello": 1}')
    os.mkfifo(tmp_path / "rank_5")
    records, missing = read_flight_files(sorted(tmp_path.iterdir()))
    assert [r.rank for r in records] == [0]
    assert [g.reason.split(":")[0] for g in missing] == ["rank_1", "rank_2", "rank_3", "rank_4", "rank_5"]
    assert "only plain data is read" in missing[0].reason
    assert not Path("/tmp/rayrl-debug-was-here").exists()


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for prefix in (b"", b"\x80\x02", b'{"entries": '):
        try:
            parse(prefix + data, "x")
        except UnreadableFileError:
            pass


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda x: (
            st.lists(x, max_size=3)
            | st.dictionaries(
                st.sampled_from(["entries", "pg_config", "pg_status", "seq_id", "profiling_name", "ranks", "frames", "input_sizes"]), x, max_size=4
            )
        ),
        max_leaves=12,
    )
)
def test_no_structure_raises_anything_else(plain: object) -> None:
    try:
        parse(pickle.dumps({"entries": plain, "pg_config": plain, "pg_status": plain}), "x")
    except UnreadableFileError:
        pass
