"""Logs that name each collective of each rank: who went into another one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.imports.logs import read_log
from ray_rl_debug.logs.running import CALLS_OF_WRITER, read_calls
from ray_rl_debug.model.report import Certainty, Finding
from ray_rl_debug.model.snapshot.log_book import LogWriter


def nccl(pid: int, number: int, op: str = "AllReduce", *, comm: str = "0x55a0", members: int = 4) -> str:
    told = f"count 512 datatype 7 op 0 root 0 comm {comm} [nranks={members}] stream 0x55d8c0"
    return f"gpu01:{pid}:{pid} [{pid % 8}] NCCL INFO {op}: opCount {number:x} sendbuff 0x7f3a10 recvbuff 0x7f3a10 {told}"


def torch(rank: int, number: int, op: str = "BROADCAST", shape: str = "4, 2") -> str:
    told = f"CollectiveFingerPrint(SequenceNumber={number}, OpType={op}, TensorShape=[{shape}], TensorDtypes=Byte, TensorDeviceTypes=Tens"
    return f"[I ProcessGroupWrapper.cpp:562] [Rank {rank}] Running collective: {told}"


def found_in(tmp_path: Path, *lines: str) -> list[Finding]:
    (tmp_path / "job.log").write_text("\n".join(lines) + "\n")
    snapshot = load([tmp_path / "job.log"]).snapshot
    assert snapshot is not None
    return [f for f in diagnose(snapshot).findings if f.root]


def test_the_rank_that_went_elsewhere_is_named(tmp_path: Path) -> None:
    others = [nccl(pid, number) for pid in (40, 41, 43) for number in (651, 652)]
    (one,) = found_in(tmp_path, *others, nccl(42, 651), nccl(42, 652, "AllGather"), nccl(42, 653, "AllGather"))
    assert (one.id, one.certainty, [w.label for w in one.who]) == ("RRD102", Certainty.POSSIBLE, ["pid 42"])
    assert one.summary == "by the log pid 42 went into AllGather number 28c (512 elements); 3 ranks went into AllReduce number 28c (512 elements)"


def test_lines_that_grep_found_in_several_files(tmp_path: Path) -> None:
    lines = [f"rank{at}.txt:{nccl(40 + at, 0, 'Broadcast')}" for at in range(4)]
    (one,) = found_in(tmp_path, lines[0].replace("count 512", "count 9000"), *lines[1:])
    assert (one.id, one.certainty, [w.label for w in one.who]) == ("RRD102", Certainty.POSSIBLE, ["pid 40"])


def test_the_first_size_that_differs_counts(tmp_path: Path) -> None:
    first = [nccl(pid, 4) for pid in (40, 41, 43)]
    last = [nccl(pid, 5) for pid in (40, 41, 42, 43)]
    (one,) = found_in(tmp_path, *first, nccl(42, 4).replace("count 512", "count 64"), *last)
    assert "pid 42 went into AllReduce number 4 (64 elements); 3 ranks went into AllReduce number 4 (512 elements)" in one.summary


def test_of_two_ranks_both_are_named(tmp_path: Path) -> None:
    (one,) = found_in(tmp_path, torch(0, 7), torch(1, 7), torch(0, 8, "ALLREDUCE", "1"), torch(1, 8))
    assert [w.label for w in one.who] == ["rank 0", "rank 1"]
    assert one.summary == (
        "by the log the ranks went into different collectives: "
        "rank 0 in ALLREDUCE number 8 (1 element) against rank 1 in BROADCAST number 8 (8 elements)"
    )


def test_a_rank_that_is_behind_may_keep_the_others(tmp_path: Path) -> None:
    (one,) = found_in(tmp_path, *(torch(rank, n) for rank in range(4) for n in (7, 8)), torch(0, 9), torch(1, 9), torch(3, 9))
    assert (one.cause.value, one.certainty, [w.label for w in one.who]) == ("straggler", Certainty.POSSIBLE, ["rank 2"])
    assert "rank 2 went into BROADCAST number 8 (8 elements), and into none after it; 3 ranks went into" in one.summary


@pytest.mark.parametrize(
    "lines",
    [
        [torch(rank, number) for rank in range(4) for number in (7, 8)],
        [nccl(40, 9), nccl(40, 10), nccl(41, 3, comm="0x77"), nccl(41, 10, "AllGather")],
        [nccl(pid, 0, op) for pid, op in ((40, "AllReduce"), (40, "AllGather"), (41, "AllGather"), (41, "AllReduce"))],
        [torch(0, 7), torch(0, 20, "ALLREDUCE"), torch(1, 8), torch(1, 20)],
        [nccl(40, 7, members=4), nccl(41, 7, "AllGather", members=2)],
        [torch(0, 7, "ALLREDUCE")],
        [torch(0, 900), torch(1, 7, "ALLREDUCE")],
    ],
    ids=["all alike", "two communicators", "a count that stands still", "numbers of two groups", "groups of two sizes", "one rank", "far apart"],
)
def test_ranks_that_agree_or_are_not_of_one_group_are_not_accused(lines: list[str], tmp_path: Path) -> None:
    assert found_in(tmp_path, *lines) == []


def test_after_a_failure_where_the_ranks_stopped_says_nothing(tmp_path: Path) -> None:
    failed = "[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered"
    found = found_in(tmp_path, torch(0, 7), torch(1, 7), torch(0, 8, "ALLREDUCE"), torch(1, 8), failed)
    assert "RRD102" not in [f.id for f in found]


def test_a_writer_has_its_last_few_calls_with_their_lines(tmp_path: Path) -> None:
    text = "".join(f"{torch(rank, n)}\n" for n in range(1000, 1020) for rank in (0, 1))
    (tmp_path / "job.log").write_text(text)
    book = read_log(tmp_path / "job.log", "job")
    assert book is not None and book.book is not None
    of_one = [c for c in book.book.calls if c.writer.rank == "1"]
    assert len(of_one) == CALLS_OF_WRITER
    assert (of_one[-1].number, of_one[-1].file_line) == ("1019", 40)


def test_millions_of_calls_cost_no_more_than_the_last_ones() -> None:
    text = "".join(f"{nccl(40 + n % 64, 100 + n // 64)}\n" for n in range(20_000)).encode()

    def seconds(data: bytes) -> float:
        start = time.process_time()
        read_calls(data, lines_before=0, writer=LogWriter())
        return time.process_time() - start

    assert seconds(text) < 6 * seconds(text[-len(text) // 4 :]) + 0.2


def test_old_torch_leaves_the_comma_out_where_no_tensor_is(tmp_path: Path) -> None:
    head = "[I ProcessGroupWrapper.cpp:562] [Rank {}] Running collective: CollectiveFingerPrint(SequenceNumber=7OpType={})"
    found = found_in(tmp_path, *(head.format(rank, "BARRIER" if rank else "MONITORED_BARRIER") for rank in range(4)))
    assert [[w.rank for w in f.who] for f in found] == [[0]]


def test_work_that_is_counted_behind_the_calls_says_that_the_ranks_went_on(tmp_path: Path) -> None:
    calls = (torch(0, 1277, "ALLREDUCE", ""), torch(1, 1275, "ALLREDUCE", ""))
    assert found_in(tmp_path, *calls)
    assert found_in(tmp_path, "step 102 loss 0.8", "step 103 loss 0.8", *calls)
    assert not found_in(tmp_path, *calls, "step 103 loss 0.8", "step 104 loss 0.7")
