"""Whose stack it is, as people say it: exceptions, counts, other languages, containers, listings."""

from __future__ import annotations

import pytest

from ray_rl_debug.formats.dump import Dump
from ray_rl_debug.formats.pasted import labels, ps, said
from ray_rl_debug.formats.pasted.read import read

STACK = "  f (a.py:1)\n  g (a.py:2)\n"


def _names(dumps: list[Dump]) -> list[tuple[int | None, int | None, str | None]]:
    return [(d.pid, d.rank, d.label) for d in dumps]


@pytest.mark.parametrize("words", ["Same on every rank except rank 3:", "All ranks but rank 3:", "everywhere apart from rank 3 it is:"])
def test_a_rank_that_is_excluded_is_not_the_one_that_is_shown(words: str) -> None:
    first, second = read(f"{words}\n{STACK}\nrank 3:\n{STACK}")
    assert (first.rank, second.rank) == (None, 3)
    assert [s.ranks for _, s in first.said if s.kind == "except"] == [(3,)]


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("rangs 0 à 2 :", (0, 1, 2)),
        ("Rango 1:", (1,)),
        ("랭크 4:", (4,)),
        ("ранг 5:", (5,)),
        ("ranks 0 und 3:", (0, 3)),
        ("卡 0:", (0,)),
    ],
)
def test_ranks_in_other_languages(text: str, ranks: tuple[int, ...]) -> None:
    head = labels.read(text)
    assert head is not None
    assert head.ranks == ranks


def test_counted_stacks_are_several_processes_each() -> None:
    counted = read("     31     f (a.py:1)|    g (b.py:2)\n      1     h (c.py:3)|    g (b.py:2)\n")
    assert [[s.count for _, s in d.said] for d in counted] == [[31], []]
    assert [d.threads[0].frames[0][0] for d in counted] == ["f", "h"]


def test_one_pid_in_two_containers_is_two_processes() -> None:
    dump = 'Thread 71 (idle): "MainThread"\n' + STACK
    assert [d.node for d in read(f"--- worker-1 ---\n{dump}--- worker-2 ---\n{dump}")] == ["worker-1", "worker-2"]


def test_a_heading_of_a_number_is_a_pid() -> None:
    text = f'### 880\nThread 880 (idle): "MainThread"\n{STACK}### 881\nError: Timed out waiting for process 881 to stop\n### 882\n{STACK}'
    assert [pid for pid, _, _ in _names(read(text))] == [880, 881, 882]
    assert said.unread("Error: Timed out waiting for process 881 to stop", expected=False) is not None


def test_a_tree_of_processes_draws_no_part_of_a_name() -> None:
    columns = ("PID", "PPID", "STAT", "CMD")
    assert ps.row("7702 7701 Sl    \\_ python vision_rl.py", columns) == ps.row("7702 7701 Sl python vision_rl.py", columns)


def test_printed_tasks_are_tasks() -> None:
    line = "<Task pending name='Task-{0}' coro=<episode() running at /app/w.py:88> wait_for=<Future pending cb=[Task.task_wakeup()]>>"
    tasks = read(f"tasks:\n{{{line.format(1)}, {line.format(2)}}}\n")[0].tasks
    assert [(t.name, t.chain) for t in tasks] == [("Task-1", [("episode", "/app/w.py", 88)]), ("Task-2", [("episode", "/app/w.py", 88)])]
    assert read("Task was destroyed but it is pending!\ntask: " + line.format(3) + "\n") == []


@pytest.mark.parametrize(
    ("told", "labels"),
    [("TP0, TP2-4", ["TP0", "TP2", "TP3", "TP4"]), ("TP1, TP6 and TP7", ["TP1", "TP6", "TP7"]), ("DP0 TP1", ["DP0_TP1"])],
)
def test_the_name_of_a_part_may_stand_before_each_number(told: str, labels: list[str]) -> None:
    assert [d.label for d in read(f"{told}:\n```\nall_reduce (a.py:3)\nstep (b.py:4)\n```\n")] == labels
