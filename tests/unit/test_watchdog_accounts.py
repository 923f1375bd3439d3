"""Watchdogs of several ranks in logs: who was at another collective."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.imports.logs import read_log
from ray_rl_debug.logs.heads import read_head
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.story.watchdog_accounts import Differing, differing

DP = "[PG ID 2 PG GUID 7(dp) Rank 0] "


def timed_out(rank: int, seq: int, op: str = "ALLREDUCE", elements: int = 8) -> str:
    work = f"WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={elements}, NumelOut={elements}, Timeout(ms)=600000)"
    return f"[rank{rank}]:[E1102 10:30:00.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: {work} ran for 600031 ms"


def came(rank: int, seq: int, enqueued: int, group: str = DP) -> str:
    said = f"failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: {enqueued}, last completed work: {seq - 1}"
    return f"[rank{rank}]:[E1102 10:30:00.2 ProcessGroupNCCL.cpp:2271] {group} {said}"


def told(tmp_path: Path, *lines: str) -> tuple[Differing, ...]:
    (tmp_path / "job.log").write_text("\n".join(lines) + "\n")
    book = read_log(tmp_path / "job.log", "job")
    assert book is not None and book.book is not None
    return differing([book.book])


def odd(found: tuple[Differing, ...]) -> list[str]:
    return [a.who.label for one in found for a in one.odd]


def test_the_rank_of_the_world_counts_not_that_of_the_group() -> None:
    for line in (timed_out(5, 44), came(5, 44, 44)):
        assert read_head(line).writer.rank == "5"


def test_who_had_not_enqueued_it_is_told(tmp_path: Path) -> None:
    found = told(tmp_path, timed_out(4, 44), came(4, 44, 45), timed_out(5, 44), came(5, 44, 44), came(6, 43, 43))
    assert (odd(found), found[0].kind, found[0].certainty) == (["rank 6"], "missing", Certainty.LIKELY)


@pytest.mark.parametrize(("op", "elements", "kind"), [("_ALLGATHER_BASE", 8, "type"), ("ALLREDUCE", 9, "size")])
def test_who_is_in_another_one_is_told(op: str, elements: int, kind: str, tmp_path: Path) -> None:
    found = told(tmp_path, timed_out(0, 9), timed_out(1, 9), timed_out(2, 9, op, elements), timed_out(3, 9))
    assert (odd(found), found[0].kind, found[0].certainty) == (["rank 2"], kind, Certainty.POSSIBLE)


def test_of_two_both_are_told(tmp_path: Path) -> None:
    found = told(tmp_path, timed_out(0, 9), timed_out(1, 9, "BROADCAST"))
    assert odd(found) == ["rank 0", "rank 1"]
    assert found[0].is_tie


@pytest.mark.parametrize(
    "lines",
    [
        (timed_out(0, 9), timed_out(1, 9), timed_out(2, 9)),
        (timed_out(0, 9), timed_out(1, 9), timed_out(2, 400), timed_out(3, 400)),
        (timed_out(0, 9), timed_out(1, 9), timed_out(2, 9, "_REDUCE_SCATTER_BASE"), timed_out(3, 9, "_REDUCE_SCATTER_BASE")),
        (timed_out(0, 9, "ALLTOALL_BASE", 7), timed_out(1, 9, "ALLTOALL_BASE", 8), timed_out(2, 9, "ALLTOALL_BASE", 8)),
        (timed_out(0, 9), came(0, 9, 9), timed_out(1, 11), came(1, 11, 11, "[PG ID 2 PG GUID 8(dp) Rank 0] ")),
        (timed_out(0, 9),),
    ],
    ids=["all at one", "numbers of two groups", "two groups of two", "sizes that may differ", "groups by their names", "one rank"],
)
def test_groups_that_agree_or_are_not_one_accuse_nobody(lines: tuple[str, ...], tmp_path: Path) -> None:
    assert told(tmp_path, *lines) == ()
