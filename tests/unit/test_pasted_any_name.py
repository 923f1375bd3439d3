"""Names that no table knows, before whole stacks; long sentences that say of one rank where it stands; strace of all versions."""

from __future__ import annotations

import pytest

from ray_rl_debug.formats.pasted.read import read

STACK = "recv (vllm/parallel_state.py:931) < execute_model (vllm/worker.py:301)"


def told(text: str) -> list[tuple[int | str | None, list[str]]]:
    return [(d.rank if d.rank is not None else d.label, [f[0] for f in d.threads[0].frames]) for d in read(text) if d.threads]


def test_a_name_with_ranks_in_brackets_is_each_of_them() -> None:
    assert told(f"replica-a [0, 1]: {STACK}\n") == [("replica-a 0", ["recv", "execute_model"]), ("replica-a 1", ["recv", "execute_model"])]


def test_a_name_alone_is_its_process() -> None:
    assert told(f"critic2: {STACK}\n") == [("critic2", ["recv", "execute_model"])]


@pytest.mark.parametrize("word", ["stack", "trace", "here", "frames", "main"])
def test_what_people_write_before_a_stack_is_nobody(word: str) -> None:
    assert [who for who, _ in told(f"{word}: {STACK}\n")] in ([], [None])


def test_a_long_sentence_above_a_stack_names_the_one_rank_that_it_says_is_stuck() -> None:
    above = "after I had a look with a tool that shows call stacks, I find that the rank 3 process hangs on a broadcast"
    frames = '  File "/w/ddp.py", line 30, in broadcast\n    work.wait()\n  File "/w/save.py", line 9, in save\n    broadcast(x)\n'
    assert [who for who, _ in told(f"{above}\n\n```\n{frames}```\n")] == [3]


def test_a_long_sentence_about_two_names_neither() -> None:
    above = "after I had a look with a tool that shows call stacks, I find that rank 3 hangs on a broadcast and rank 2 is stuck too"
    frames = '  File "/w/ddp.py", line 30, in broadcast\n    work.wait()\n  File "/w/save.py", line 9, in save\n    broadcast(x)\n'
    assert [who for who, _ in told(f"{above}\n\n```\n{frames}```\n")] == [None]


def test_old_strace_attaches_without_its_name() -> None:
    text = "$ sudo strace -p 1438\nProcess 1438 attached\nrecvfrom(114, \n"
    assert [(d.pid, d.threads[0].call) for d in read(text)] == [(1438, "recvfrom")]


def test_another_tool_that_attaches_is_no_strace() -> None:
    assert read("(lldb) attach 1438\nProcess 1438 attached\nread(27, \n") == []
