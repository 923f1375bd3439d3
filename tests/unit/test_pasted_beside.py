"""What stands beside stacks in a pasted text: panes, trees of processes, names with numbers, lines of logs."""

from __future__ import annotations

from ray_rl_debug.formats.pasted import loose, panes, said
from ray_rl_debug.formats.pasted.read import read

LEFT = "2025-03-02 08:14:46 step 12                "


def test_a_number_behind_a_word_is_a_name_and_no_count() -> None:
    assert said.count_in("the actor on node 2 stack trace:") is None
    assert said.count_in("stage 3 workers:") is None
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
