"""What stands beside stacks in a pasted text: panes, trees of processes, names with numbers, lines of logs."""

from __future__ import annotations

import pytest

from ray_rl_debug.formats.pasted import loose, panes, said
from ray_rl_debug.formats.pasted.read import read

LEFT = "2025-03-02 08:14:46 step 12                "


def test_a_number_behind_a_word_is_a_name_and_no_count() -> None:
    assert said.count_in("the actor on node 2 stack trace:") is None
    assert said.count_in("stage 3 workers:") is None
    assert said.count_in("a time-out, only when scaling past 4 workers:") is None
    assert said.count_in("never with more than 8 ranks:") is None
    assert said.count_in("a thread dump on 8 GPUs of the same host, where each is hanging:") is None
    assert said.count_in("on node 2: 7 ranks wait here:") == 7


def test_panes_are_told_by_one_column_that_has_stacks_right_of_it() -> None:
    frames = ["Thread 0x7F11 (idle)", *(f"    step_{i} (fit/loop.py:{i})" for i in range(4))]
    text = "\n".join(f"{LEFT}│{frame}" for frame in frames)
    assert panes.edge(text.encode()) == len(LEFT)
    assert [len(t.frames) for d in read(text) for t in d.threads] == [4]


def test_a_box_and_a_table_are_no_panes() -> None:
    assert panes.edge("\n".join(["│ step (a.py:1) │"] * 6).encode()) is None
    assert panes.edge("\n".join([f"{LEFT}│ 0.31"] * 6).encode()) is None


def test_a_tree_tells_parents() -> None:
    text = "  10 launcher\n  11  \\_ python3\n  12      \\_ python3 <defunct>\n  13  \\_ python3\n\n"
    assert [(d.pid, d.ppid, d.state) for d in read(text)] == [(10, None, None), (11, 10, None), (12, 11, "Z"), (13, 10, None)]


def test_a_metric_behind_a_place_of_a_log_is_no_function() -> None:
    assert loose.place("optim.py:190 -- 1 {'policy_loss': 0.01}") is None
    assert loose.place("optim.py:190 -- policy_loss") == ("policy_loss", "optim.py", 190)


@pytest.mark.parametrize(
    "line",
    [
        "same on rank 1 and 2. rank 3:",
        "Ranks 1-2 are identical; and rank 3 shows:",
        "identical on ranks 1,2. Rank 3 (pid 44):",
        "ranks 1 and 2 same as above. rank 3 is different:",
    ],
)
def test_a_remark_and_a_heading_on_one_line_are_two(line: str) -> None:
    """What is said to be the same is the stack above, and the next one is of the rank that the line names last."""
    dumps = read(f"rank 0:\n  wait (train/loop.py:9)\n  main (train/loop.py:2)\n{line}\n  load (train/data.py:30)\n  main (train/loop.py:1)\n")
    assert {d.rank: d.threads[0].frames[0][0] for d in dumps} == {0: "wait", 3: "load"}
    assert [s.ranks for d in dumps if d.rank == 0 for _, s in d.said] == [(1, 2)]


def test_a_heading_alone_and_a_sentence_stay_whole() -> None:
    assert [d.rank for d in read("it hangs. rank 3:\n  load (train/data.py:30)\n  main (train/loop.py:1)\n")] == [3]


OF_ONE = '\nRank 5:\n\n```\nThread 2201 (active): "MainThread"\n    run_case (reward/sandbox.py:88)\n    step (train.py:120)\n```\n\n'


@pytest.mark.parametrize(
    ("sentence", "label", "count"),
    [
        ("All other ranks are stuck in `all_reduce`.", "all other ranks", None),
        ("The other 7 ranks are waiting in torch.distributed.barrier.", None, 7),
        ("Everyone else waits in `recv_object`.", "everyone else", None),
    ],
)
def test_where_all_others_are_said_to_be_beside_one_stack(sentence: str, label: str | None, count: int | None) -> None:
    first, others = read(f"4 nodes.{OF_ONE}{sentence}\n")
    assert (first.rank, first.pid) == (5, 2201)
    assert (others.label, [said.count for _, said in others.said]) == (label, [count] if count else [])


@pytest.mark.parametrize(
    "sentence", ["The other threads are idle in `cond_wait`.", "All other ranks would hang in `all_reduce`.", "All others are in `run_case` too."]
)
def test_no_other_process_is_told_of_beside_one_stack(sentence: str) -> None:
    assert len(read(f"{OF_ONE}{sentence}\n")) == 1
