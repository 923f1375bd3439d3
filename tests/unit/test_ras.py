"""NCCL RAS: asked over a real socket, read in each of its forms, judged over two polls."""

from __future__ import annotations

import socket
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ras_answers import TEXT, answer, lost, rank, serve, without_commas

from ray_rl_debug.analyze.ras import RasResult, judge_communicators
from ray_rl_debug.collect.nccl_ras import query_ras
from ray_rl_debug.formats.nccl_ras import is_ras, parse_ras
from ray_rl_debug.model.errors import UnreadableFileError

EVEN = {"AllReduce": 7, "Broadcast": 2}


def judged(*answers: bytes) -> RasResult:
    (one,) = judge_communicators([parse_ras(a) for a in answers])
    return one


@pytest.mark.parametrize("malformed", [False, True])
def test_asked_over_the_socket_in_json(malformed: bool) -> None:
    good = answer([rank(0, EVEN), rank(1, EVEN)], [lost(2, dead=True), lost(3, dead=False)])
    data = without_commas(good) if malformed else good
    assert malformed == (data != good)
    with serve(lambda n: data) as port:
        found, gap = query_ras(port=port)
    assert gap is None
    assert found is not None
    (one,) = found
    assert (one.size, [r.rank for r in one.ranks], [(r.rank, r.status, r.pid) for r in one.missing]) == (
        4,
        [0, 1],
        [(2, "dead", 1002), (3, "unresponsive", 1003)],
    )
    assert (one.ranks[0].counts, one.ranks[0].host, one.ranks[0].status) == (EVEN, "10.0.0.1", "running")


def test_an_older_nccl_answers_in_text() -> None:
    with serve(lambda n: TEXT.encode(), knows_json=False) as port:
        found, gap = query_ras(port=port)
    assert gap is None
    assert found is not None
    pair, four = sorted(found, key=lambda c: c.size)
    assert [(r.rank, r.pid, r.status) for r in pair.missing] == [(1, 1007, "dead")]
    assert {r.rank: r.counts for r in four.ranks} == {r: {"AllReduce": 640 if r == 2 else 641} for r in range(4)}
    assert next(r for r in four.ranks if r.rank == 2).pid == 1002


def test_a_list_of_ranks_below_their_number() -> None:
    named = "  2 ranks have not launched any operations\n  Rank 1 -- GPU 1 managed by process 9 on node h\n"
    text = TEXT.replace("  Rank 2 has launched up to operation 640 --", named + "  Rank 2 --")
    four = next(c for c in parse_ras(text.encode()) if c.size == 5)
    assert {r.rank: r.counts["AllReduce"] for r in four.ranks} == {0: 641, 1: 0, 2: 0, 3: 641, 4: 641}


def test_a_server_that_does_not_answer_costs_no_more_than_the_deadline() -> None:
    started = time.monotonic()
    with serve(lambda n: b"", hang=True) as port:
        found, gap = query_ras(port=port, timeout_s=0.5)
    assert found is None
    assert gap is not None
    assert "no whole answer in 0.5 s" in gap.reason
    assert time.monotonic() - started < 3


def test_the_processes_of_two_jobs_share_the_port() -> None:
    trainer, engine = answer([rank(0, EVEN, pid=11), rank(1, EVEN, pid=12)]), answer([rank(0, EVEN, pid=21)], hash_="0xdef")
    asked: list[str] = []
    with serve(lambda n: asked.append("trainer") or trainer) as port, serve(lambda n: asked.append("engine") or engine, port=port):
        # the kernel chooses who answers; in sixteen tries it never met but one of them once in 32,000
        answers = [query_ras(port=port, listeners=(11, 12, 21))[0] or () for _ in range(4)]
    met = [sorted(c.hash.split("/")[0] for c in found) for found in answers]
    assert set(asked) == {"trainer", "engine"}
    assert ["0xabc123", "0xdef"] in met
    assert all(len(set(hashes)) == len(hashes) for hashes in met), "a communicator that was told of twice is one"


def test_one_that_is_stopped_shares_the_port() -> None:
    good = answer([rank(0, EVEN, pid=11)], [lost(1, dead=False, pid=12)])
    with serve(lambda n: good) as port, socket.create_server(("127.0.0.1", port), reuse_port=True):
        started = time.monotonic()
        answers = [query_ras(port=port, listeners=(11, 12)) for _ in range(3)]
    assert any(gap is None for _, gap in answers)
    assert all(gap is None or "no whole answer" in gap.reason for _, gap in answers)
    assert time.monotonic() - started < 20


def test_nobody_listens_and_somebody_else_listens() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        _, gap = query_ras(port=held.getsockname()[1], timeout_s=1)
    assert gap is not None
    assert "refused" in gap.reason
    with serve(lambda n: b"<html>") as port:
        found, gap = query_ras(port=port)
    assert found is None
    assert gap is not None


@pytest.mark.parametrize("data", [b"", b"{", answer([rank(0, EVEN)])[:-60], b'{"communicators": 3}'])
def test_broken_answers_say_so(data: bytes) -> None:
    with pytest.raises(UnreadableFileError):
        parse_ras(data)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for prefix in (b"", b'{"nccl_version": "2.28", "communicators": [', b"Communicators...\n#0-0 (ab) MISMATCH\n"):
        try:
            parse_ras(prefix + data)
        except UnreadableFileError:
            pass


def test_what_is_an_answer() -> None:
    assert is_ras(answer([rank(0, EVEN)]))
    assert is_ras(TEXT.encode())
    assert not is_ras(b'{"entries": []}')
    assert not is_ras(b"n1:1:2 [0] NCCL INFO NCCL version 2.26.2+cuda12.6")


def test_the_rank_that_lags_in_two_polls_is_behind() -> None:
    frozen = answer([rank(0, {"AllReduce": 8}), rank(1, {"AllReduce": 7}), rank(2, {"AllReduce": 8})])
    one = judged(frozen, frozen)
    assert (one.kind, one.behind, one.ahead, one.op, one.polls) == ("behind", (1,), (0, 2), "AllReduce", 2)
    assert one.text(1) == "launched 7 AllReduce, others 8"


def test_counts_that_grow_accuse_nobody() -> None:
    first = answer([rank(0, {"AllReduce": 8}), rank(1, {"AllReduce": 7})])
    assert judged(first, answer([rank(0, {"AllReduce": 9}), rank(1, {"AllReduce": 8})])).kind == "moving"
    assert not judged(first, answer([rank(0, {"AllReduce": 9}), rank(1, {"AllReduce": 7})])).is_trouble


def test_equal_counts_say_nothing() -> None:
    even = answer([rank(0, EVEN), rank(1, EVEN)])
    assert judged(even, even).kind == "even"


def test_ranks_that_do_not_answer_twice_are_lost() -> None:
    gone = answer([rank(0, EVEN), rank(1, EVEN)], [lost(2, dead=True)])
    assert (judged(gone, gone).kind, judged(gone, gone).lost) == ("lost", (2,))
    late = answer([rank(0, EVEN), rank(1, EVEN), rank(2, EVEN)])
    assert judged(late, gone).kind == "even"


def test_each_side_launched_what_the_other_did_not() -> None:
    counts = answer([rank(0, {"AllReduce": 8, "AllGather": 1}), rank(1, {"AllReduce": 7, "AllGather": 2}), rank(2, {"AllReduce": 8, "AllGather": 1})])
    assert (judged(counts, counts).kind, judged(counts, counts).behind) == ("mismatch", (1,))
    tie = answer([rank(0, {"AllReduce": 8, "AllGather": 1}), rank(1, {"AllReduce": 7, "AllGather": 2})])
    assert judged(tie, tie).behind == ()


def test_a_communicator_in_teardown_is_no_hang() -> None:
    leaving = answer([rank(0, {"AllReduce": 8}, abort=True), rank(1, {"AllReduce": 7})])
    assert judged(leaving, leaving).kind == "leaving"
