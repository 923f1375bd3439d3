"""``torchfrtrace -j``: the tables as torch 2.13 prints them."""

from __future__ import annotations

import json
from pathlib import Path

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.formats.flight_table import documents
from ray_rl_debug.imports.folder import load

REDUCE = "all_reduce(input_sizes=[[1024]], state=completed)"
GATHER = "_all_gather_base(input_sizes=[[4]], state=scheduled)"
VERBOSE = (
    "all_reduce(timestamp_created=1000, input_sizes=[[8]], output_sizes=[[8]], input_dtypes=['Float'], output_dtypes=['Float'], "
    "collective_seq_id | p2p_seq_id={seq}, pg_name=0-4850097147344926394, pg_description=default_pg, pg_size=2, stack_id=0, state={state})"
)


def _table(*columns: list[str]) -> str:
    """Columns set as tabulate sets them."""
    widths = [max(len(c) for c in [*column, "Rank 0"]) for column in columns]
    height = max(map(len, columns))
    rows = [[f"Rank {i}" for i in range(len(columns))], ["-" * w for w in widths]]
    rows += [[column[i] if i < len(column) else "" for column in columns] for i in range(height)]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows) + "\n"


def _read(text: str) -> dict[int, list[tuple[str, int, str]]]:
    found = [json.loads(document) for _, document in documents(text.encode())]
    return {d["rank"]: [(e["profiling_name"], e["collective_seq_id"], e["state"]) for e in d["entries"]] for d in found}


def test_the_order_in_a_column_is_the_number() -> None:
    text = "loaded 3 files\n" + _table([REDUCE, GATHER], [REDUCE], [REDUCE, GATHER])
    assert _read(text) == {
        0: [("nccl:all_reduce", 1, "completed"), ("nccl:_all_gather_base", 2, "scheduled")],
        1: [("nccl:all_reduce", 1, "completed")],
        2: [("nccl:all_reduce", 1, "completed"), ("nccl:_all_gather_base", 2, "scheduled")],
    }


def test_from_the_first_row_on_that_differs_nothing_is_known() -> None:
    text = _table([REDUCE, GATHER, REDUCE], [REDUCE, REDUCE])
    assert _read(text) == {0: [("nccl:all_reduce", 1, "completed")], 1: [("nccl:all_reduce", 1, "completed")]}


def test_verbose_cells_have_numbers_and_groups_of_their_own() -> None:
    text = _table([VERBOSE.format(seq=41, state="completed"), VERBOSE.format(seq=42, state="started")], [VERBOSE.format(seq=41, state="completed")])
    assert _read(text)[0][1] == ("nccl:all_reduce", 42, "started")
    assert json.loads(next(documents(text.encode()))[1])["entries"][0]["process_group"] == ["0", "default_pg"]


def test_other_tables_are_none() -> None:
    for text in ("Rank 0  Rank 1\n------  ------\n1  2\n", "Rank 0\n----\n", "Rank 0 state=x\n", "Rank 0\n---\nf(state=)\n"):
        assert list(documents(text.encode())) == []


def test_the_rank_that_has_not_come_is_named_and_to_be_dumped(tmp_path: Path) -> None:
    (tmp_path / "fr.txt").write_text(_table([REDUCE, GATHER], [REDUCE], [REDUCE, GATHER]))
    snapshot = load([tmp_path / "fr.txt"]).snapshot
    assert snapshot is not None
    report = diagnose(snapshot)
    assert [(w.label, report.findings[0].certainty.value) for w in report.findings[0].who] == [("world/1", "possible")]
    assert report.next_dumps[0].what.startswith("world/1")
