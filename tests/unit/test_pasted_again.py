"""What posts of a second, unseen corpus held and was not read at first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ray_rl_debug.formats.blocks import documents
from ray_rl_debug.formats.pasted import labels, ps, said
from ray_rl_debug.formats.pasted.read import read
from ray_rl_debug.formats.stack_table import short_file
from ray_rl_debug.imports.folder import load

LIST = '[\n {"pid": 311, "thread_name": "MainThread", "frames": [{"name": "f", "filename": "/a.py", "line": 3}]}\n]\n'


def test_py_bt_below_the_name_of_another_process_is_of_that_process():
    one = 'pid {pid} (rank {rank}):\n\n(gdb) py-bt\nTraceback (most recent call first):\n  File "/w/{file}.py", line 3, in {file}\n    x()\n\n'
    first, second = read(one.format(pid=77119, rank=4, file="a") + one.format(pid=77120, rank=5, file="b"))
    assert [(d.pid, d.rank, len(d.threads[0].frames)) for d in (first, second)] == [(77119, 4, 1), (77120, 5, 1)]


def test_the_process_of_a_loop_that_could_not_be_read():
    stack = 'Process {pid}: python a.py\n\nThread {pid} (active): "MainThread"\n    f (a.py:1)\n'
    text = "$ for p in 9101 9102 9103; do py-spy dump -p $p; done\n"
    text += (
        stack.format(pid=9101) + "Error: Failed to get process executable name.\nReason: Permission denied (os error 13)\n" + stack.format(pid=9103)
    )
    found = read(text)
    assert [d.pid for d in found] == [9101, 9102, 9103]
    assert [s.kind for _, s in found[1].said] == ["unread", "unread"]


@pytest.mark.parametrize("text", ["16 GPU on 2 nodes, here is one of them:", "8x A100 GPUs, py-spy says:", "only one of 8 ranks looked at:"])
def test_one_process_of_many_is_one(text: str):
    assert said.count_in(text) is None


def test_lists_of_threads_below_prompts(tmp_path: Path):
    text = f"it hangs\n$ py-spy dump --json --pid 311\n{LIST}$ py-spy dump --json --pid 312\n{LIST.replace('311', '312')}"
    assert [line for line, _ in documents(text.encode())] == [3, 7]
    assert [line for line, _ in documents(f"```json\n{LIST}```\n".encode())] == [2]
    assert list(documents(b'[\n {"frames": [' * 500)) == []
    file = tmp_path / "post.md"
    file.write_text(text)
    snapshot = load([file]).snapshot
    assert snapshot is not None
    assert [p.pid for n in snapshot.nodes for p in n.processes] == [311, 312]


def test_a_listing_whose_heading_grep_took_away():
    command = "$ ps -eo pid,stat,wchan:24,args | grep train"
    assert ps.asked_columns(command) == ("PID", "STAT", "WCHAN", "ARGS")
    assert ps.asked_columns("$ ps -eo pid,nonsense | cat") is None
    found = read(f"{command}\n  6400 Rl   -                        python train.py\n  6402 Tl   do_signal_stop           python train.py\n")
    assert [(d.pid, d.state) for d in found] == [(6400, "R"), (6402, "T")]


@pytest.mark.parametrize("words", ["rank0 .. rank6 (all the same):", "rank 0 - rank 6:", "ranks 0 to rank 6:", "rank_0…rank_6:"])
def test_a_range_whose_ends_both_say_rank(words: str):
    head = labels.read(words)
    assert head is not None
    assert head.ranks == (0, 1, 2, 3, 4, 5, 6)


def test_a_file_that_only_one_library_has():
    assert short_file("distributed_c10d.py") == ("torch/distributed/distributed_c10d.py", False)
    assert short_file("mine/distributed_c10d.py") == ("mine/distributed_c10d.py", False)


FLIGHT = '{"version": "2.10", "pg_config": {}, "entries": [\n {"record_id": 1, "collective_seq_id": 4}]}'


@pytest.mark.parametrize(
    "form",
    ["rank 0:\n{0}\n\nrank 1:\n{1}\n", "**Rank 0**\n```json\n{0}\n```\n**Rank 1**\n\n```\n{1}\n```\n", "rank 0: {0}\nrank_1 = {1} and no more\n"],
)
def test_dumps_of_the_flight_recorder_are_of_the_rank_that_stands_before_them(form: str) -> None:
    text = "they differ:\n\n" + form.replace("{0}", FLIGHT).replace("{1}", FLIGHT)
    assert [json.loads(document)["rank"] for _, document in documents(text.encode())] == [0, 1]


def test_a_dump_that_tells_its_rank_has_no_other() -> None:
    ((_, document),) = documents(f'from rank 5 of\n{FLIGHT[:-1]}, "rank": 3}}\n'.encode())
    assert json.loads(document)["rank"] == 3
    assert list(documents(f"rank 0:\n{FLIGHT[:60]}\n".encode())) == []


def test_a_traceback_without_its_line_breaks():
    (one,) = read(
        'it says Traceback (most recent call last): File "/w/run.py", line 9, in <module> main() File "/w/a.py", line 3, in main barrier() '
        "RuntimeError: no such group\n"
    )
    assert [(f[0], f[2]) for f in one.threads[0].frames] == [("main", 3), ("<module>", 9)]
    assert [(s.kind, s.text) for _, s in one.said] == [("failed", "RuntimeError: no such group")]


def test_a_traceback_of_a_rank_without_its_line_breaks_and_the_name_in_brackets():
    (one,) = read(
        '> [rank14]: Traceback (most recent call last): [rank14]: File "/w/train.py", line 71, in [rank14]: fire.Fire(do) [rank14]: '
        'File "/w/dist.py", line 83, in barrier [rank14]: dist.barrier() [rank14]: ValueError: no\n'
    )
    assert one.rank == 14
    assert [(f[0], f[2]) for f in one.threads[0].frames] == [("barrier", 83), ("<module>", 71)]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("5 minutes later: same.", "again"),
        ("After ten minutes nothing has changed", "again"),
        ("10 min later it is still exactly the same", "again"),
        ("5 minutes later: same error", "apart"),
        ("5 minutes after the restart it is the same", "apart"),
        ("later it is the same", None),
    ],
)
def test_a_line_that_says_no_more_than_that_nothing_has_changed_is_a_later_look(line: str, kind: str | None) -> None:
    found = said.remark(line)
    assert (found.kind if found is not None else None) == kind
