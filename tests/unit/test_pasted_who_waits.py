"""Sentences that tell who waits where, in the sentence before, for all others, and who has not come; guesses tell nothing."""

from __future__ import annotations

import pytest

from ray_rl_debug.formats.pasted.read import read


def told(text: str) -> list[tuple[str | int | None, list[str]]]:
    return [(d.rank if d.rank is not None else d.label, [f[0] for f in d.threads[0].frames]) for d in read(text)]


def test_they_block_there_speaks_of_the_sentence_before() -> None:
    assert told("Rank 2 enters `all_reduce` in `step`. It blocks there.") == [(2, ["all_reduce", "step"])]


@pytest.mark.parametrize(
    "text",
    [
        "Rank 2 enters `all_reduce` in `step`. It never blocks there.",
        "Rank 2 would enter `all_reduce` in `step`. It blocks there.",
        "Rank 2 has `all_reduce` in `step`. It blocks there.",
        "Rank 2 enters `all_reduce` in `step`. It comes back.",
    ],
)
def test_who_is_not_said_to_enter_and_to_block_stands_nowhere(text: str) -> None:
    assert told(text) == []


def test_everyone_else_is_somebody() -> None:
    assert told("Rank 3 sits in `load_shard`. Everyone else is stuck in `all_gather`.") == [(3, ["load_shard"]), ("everyone else", ["all_gather"])]


@pytest.mark.parametrize("word", ["likely", "probably", "perhaps", "presumably"])
def test_a_guess_is_no_stack(word: str) -> None:
    assert told(f"rank 1 is blocked earlier, {word} in `slice_batch`.") == []


def test_a_wait_for_a_rank_is_at_no_code_of_the_sentence_before() -> None:
    text = "One rank is stuck in `loss.reduce`. At the same time other ranks train on and wait for this rank."
    assert told(text) == [("one rank", ["loss.reduce"])]


def test_who_waits_for_another_one_is_not_where_that_one_is() -> None:
    assert told("Rank 2 is stuck in `optimizer.step()`. The other processes just wait for it.") == [(2, ["optimizer.step"])]


@pytest.mark.parametrize("who", ["the child", "its children", "each child process", "the forked child 4711"])
def test_children_are_somebody(who: str) -> None:
    assert told(f"The parent reads, and {who} hangs in `flush_streams` for ever.") == [(who, ["flush_streams"])]


def test_of_two_the_one_next_to_the_words_stands_there() -> None:
    assert told("The reason why the program hangs is, one of the processes is stuck in `optimizer.step()`.") == [
        ("one of the processes", ["optimizer.step"])
    ]


def test_together_is_no_function() -> None:
    assert told("=> 3 of 4 ranks are waiting together at mesh.py:694") == []


def test_the_chain_is_of_whose_stack_the_words_speak() -> None:
    text = "- gather of the logits, missing ranks: {0}, with rank 1's whole stack attached: `run_loop → sample_tokens → gather_logits`"
    assert told(text) == [(1, ["gather_logits", "sample_tokens", "run_loop"])]


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("Rank 1 waits in `broadcast`, but rank 0 is not calling `broadcast`.", (0,)),
        ("Ranks 0-2 sit in `all_reduce`, rank 3 never entered it.", (3,)),
        ("Rank 1 is stuck in `barrier`; ranks 2 and 3 have not reached it.", (2, 3)),
    ],
)
def test_who_has_not_come_is_a_remark_of_those_who_wait(text: str, ranks: tuple[int, ...]) -> None:
    assert {r for d in read(text) for _, said in d.said if said.kind == "missing" for r in said.ranks} == set(ranks)


@pytest.mark.parametrize(
    "text",
    [
        "Rank 1 is stuck in `broadcast` if rank 0 does not call `broadcast`.",
        "Rank 1 is stuck in `broadcast` because the loader of rank 0 is slow.",
        "Rank 1 is stuck in `broadcast`, and rank 1 never reached the end.",
    ],
)
def test_who_only_would_not_come_is_not_said_to_be_absent(text: str) -> None:
    assert [said.kind for d in read(text) for _, said in d.said if said.kind == "missing"] == []


def test_the_last_sentence_before_a_stack_names_its_owner() -> None:
    frames = "(gdb) bt\n#0  __libc_recv (fd=98) at ../sysdeps/recv.c:28\n#1  0x00007f77 in c10d::TCPStore::get () from /opt/libtorch_cpu.so\n"
    (dump,) = read(f'ranks 1-7 except rank 3 report "Connection reset by peer". rank 3 got stuck, and the stack is:\n{frames}')
    assert (dump.rank, dump.said) == (3, [])


def test_whose_backtrace_it_is_may_stand_in_backticks() -> None:
    (dump,) = read("It has one child left, `26346`. The backtrace of `26346`:\n```\n(gdb) bt\n#0  __lll_lock_wait () at lowlevellock.S:135\n```\n")
    assert dump.pid == 26346


@pytest.mark.parametrize(
    "told",
    [
        "`torchfrtrace` names it: `nccl:_all_gather_base`, **missing ranks: {0}**, scheduled on rank 1.",
        '*"Rank 1 has launched up to operation 288686 — Rank 0 has launched up to operation 288685."*',
    ],
)
def test_what_a_tool_said_of_who_is_missing_is_told_of_those_whose_stacks_are_shown(told: str) -> None:
    text = f"{told}\n\nrank 1:\n```\nall_gather (torch/distributed/distributed_c10d.py:3068)\nstep (a.py:3)\n```\n"
    (dump,) = read(text)
    assert [(said.kind, said.ranks) for _, said in dump.said] == [("missing", (0,))]


def test_a_rank_that_is_shown_is_not_missing() -> None:
    text = "missing ranks: {0}\n\nrank 0:\n```\nall_gather (torch/distributed/distributed_c10d.py:3068)\nstep (a.py:3)\n```\n"
    assert [said for dump in read(text) for _, said in dump.said] == []


@pytest.mark.parametrize(
    "head",
    [
        "[rank{r}] Stack (most recent call last):",
        "rank {r}: Traceback (most recent call last):",
        "Stack (most recent call last) of rank {r}:",
        "Rank {r} stack (most recent call last):",
    ],
)
def test_the_head_of_a_traceback_may_tell_whose_it_is(head: str) -> None:
    frames = '  File "/w/t.py", line 12, in <module>\n  File "/lib/distributed_c10d.py", line 4159, in barrier\n    work.wait()\n'
    text = "Rank 3 does not call it. The others:\n\n" + "".join(f"{head.format(r=r)}\n{frames}" for r in (0, 1))
    assert [(d.rank, len(d.threads[0].frames), [s.ranks for _, s in d.said]) for d in read(text)] == [(0, 2, [(3,)]), (1, 2, [(3,)])]


def test_who_is_not_alike_is_not_the_same() -> None:
    text = "rank 0、1、3 都是：\n```\nall_gather (a.py:3)\nstep (b.py:4)\n```\n只有 rank 2 不一样：\n```\nrun (c.py:5)\nscore (b.py:6)\n```\n"
    assert [(d.rank, [s.kind for _, s in d.said]) for d in read(text)] == [(0, []), (1, []), (3, []), (2, [])]


@pytest.mark.parametrize("last", ["Most processes hang at the following place:", "The others:", "All ranks hang here:"])
def test_who_is_named_a_sentence_before_is_not_meant_by_most(last: str) -> None:
    (dump,) = read(f"The job hangs after 24 hours, tp 4. {last}\n```\nlog (a.py:3)\nstep (b.py:4)\n```\n")
    assert (dump.label, dump.rank) == (None, None)


def test_a_pod_may_be_named_between_rules() -> None:
    stack = 'Thread 0x00007f2b (most recent call first):\n  File "/app/t.py", line 512 in step\n  File "/app/t.py", line 90 in main\n'
    text = "".join(f"---- trainer-0-{pod} ----\n{stack}" for pod in (0, 1))
    assert [(d.node, len(d.threads)) for d in read(text)] == [("trainer-0-0", 1), ("trainer-0-1", 1)]


def test_a_traceback_may_have_lost_its_first_letter() -> None:
    (dump,) = read('raceback (most recent call first):\n  Waiting for the GIL\n  File "/a/sampler.py", line 88, in sample\n    with lock:\n')
    assert [f[0] for f in dump.threads[0].frames] == ["sample"]
