"""One line that speaks of several: threads of gdb's, hosts, ranks that are as another; tables of names; trees of calls; sentences beside others."""

from __future__ import annotations

import pytest

from ray_rl_debug.formats.pasted import said
from ray_rl_debug.formats.pasted.read import read


def told(text: str) -> list[tuple[int | str | None, list[str]]]:
    return [(d.rank if d.rank is not None else d.label, [f[0] for f in d.threads[0].frames]) for d in read(text) if d.threads]


def test_one_stack_of_several_threads_is_each_ones() -> None:
    several = "Threads 2-4 (the same condition):\n#0  pthread_cond_wait () at x.S:185\n"
    text = f"{several}\nThread 1 (Thread 0x7f2a (LWP 31)):\n#0  0x0000 in poll () from /lib/libc.so.6\n"
    assert [[len(t.frames) for t in d.threads] for d in read(text)] == [[1, 1, 1, 1]]


def test_threads_without_a_list_of_numbers_are_none() -> None:
    assert read("Threads 24 per host\nThreads: 2-4\n") == []


def test_gdbs_own_number_is_no_process() -> None:
    dumps = read("Thread 1:\n#0  0x00007f22 in poll () from /lib64/libc.so.6\n#1  0x00007f23 in main () from /bin/x\n")
    assert [(d.pid, d.threads[0].tid, len(d.threads[0].frames)) for d in dumps] == [(None, None, 2)]


def test_hosts_in_plural_are_machines_of_their_own() -> None:
    frame = 'Thread 0x00007f0{n} (most recent call first):\n  File "/app/t.py", line 5 in {f}\n  File "/app/t.py", line 9 in train\n'
    text = f"Host 0 sleeps:\n\n{frame.format(n=1, f='commit')}\nHosts 1-3 went on:\n\n{frame.format(n=2, f='step')}"
    assert [d.node for d in read(text)] == ["node0", "hosts 1-3"]


def test_a_table_may_hold_chains_of_names() -> None:
    rows = "| TP0 | `all_reduce` ← `run_batch` | 31 |\n| TP1 | `broadcast_pyobj` ← `recv_requests` | - |\n"
    assert told(f"| rank | stack | batch |\n|---|---|---|\n{rows}") == [
        ("TP0", ["all_reduce", "run_batch"]),
        ("TP1", ["broadcast_pyobj", "recv_requests"]),
    ]


def test_a_table_of_steps_is_no_stack() -> None:
    assert told("| phase | order |\n|---|---|\n| rank 0 | load → train → save |\n") == []


def test_a_tree_of_calls_goes_on_below_a_frame_with_its_place() -> None:
    tree = "test_it\n  └── engine.train_batch()\n    └── _loss (e.py:3)\n      └── gather_log_probs()\n        └── pool.wait() [HANGS HERE]\n"
    assert told(f"```\n{tree}```\n") == [(None, ["pool.wait", "gather_log_probs", "_loss", "engine.train_batch", "test_it"])]


@pytest.mark.parametrize(("text", "rank"), [("其余rank 和 rank0 一样。", 0), ("其他 rank 与 rank 3 的栈完全相同", 3)])
def test_others_are_as_one_rank_in_chinese(text: str, rank: int) -> None:
    remark = said.remark(text)
    assert remark is not None
    assert (remark.kind, remark.ranks, said.as_rank(text)) == ("same", (), rank)


def test_a_sentence_that_tells_of_others_counts_beside_one_that_shows_a_file() -> None:
    text = (
        "With py-spy I saw that rank 1 was blocked on `.item()` in `log_metrics` (t/logging.py:61). All the other 7 ranks had already entered "
        "`all_reduce` in `reduce_tensor` (t/utils.py:40), so it never ended.\n"
    )
    assert [frames for _, frames in told(text)] == [[".item", "log_metrics"], ["all_reduce", "reduce_tensor"]]


def test_a_sentence_about_a_stack_that_is_shown_is_no_other_process() -> None:
    shown = '  File "/a/t.py", line 5, in step\n    x.item()\n  File "/a/t.py", line 9, in main\n    step()\n'
    assert len(told(f"Rank 1 is stuck in `item` in `step` here, and it does not come back for an hour or more:\n```\n{shown}```\n")) == 1


def test_who_may_have_entered_is_nowhere() -> None:
    assert told("All other ranks may have entered `all_reduce` in `step` at that time, we do not know.\n") == []


def test_pyflame_names_threads_by_their_number() -> None:
    text = "140302210512640:\napp/s.py:generate:58\napp/s.py:run:169\n\n140302382565184*:\n/usr/lib/threading.py:join:1056\napp/s.py:main:200\n"
    assert [[(t.owns_gil, [f[0] for f in t.frames]) for t in d.threads] for d in read(text)] == [
        [(None, ["generate", "run"]), (True, ["join", "main"])]
    ]


def test_threads_of_a_test_that_a_build_service_stamped_are_of_one_process() -> None:
    lines = (
        "~~~~~~~~ Stack of IO loop (140130848056896) ~~~~~~~~",
        '  File "/l/threading.py", line 884, in _bootstrap',
        "    self._bootstrap_inner()",
        '  File "/l/selectors.py", line 445, in select',
        "    self._epoll.poll()",
        "",
        "~~~~~~~~ Stack of MainThread (140130999999999) ~~~~~~~~",
        '  File "/b/t.py", line 77, in test',
        "    lock.acquire()",
        '  File "/l/threading.py", line 295, in wait',
        "    waiter.acquire()",
    )
    assert [[t.name for t in d.threads] for d in read("\n".join(f"[  192s] {line}" for line in lines))] == [["IO loop", "MainThread"]]


def test_a_shells_number_before_one_frame_is_its_process_and_a_count_is_none() -> None:
    text = "8101     _wait_for_work (torch/d.py:10)\n8103     write (gzip.py:289)\n"
    assert [(d.pid, [f[0] for f in d.threads[0].frames]) for d in read(text)] == [(8101, ["_wait_for_work"]), (8103, ["write"])]
    assert all(d.pid is None for d in read("   8101 f (a.py:1)\n     12 g (b.py:2)\n"))


def test_ranks_may_be_the_keys_of_a_map() -> None:
    text = "```yaml\nranks:\n  0:\n    - all_gather (a.py:31)\n    - log (t.py:7)\n  1:\n    - get (q.py:10)\n    - roll (t.py:5)\n```\n"
    assert told(text) == [(0, ["all_gather", "log"]), (1, ["get", "roll"])]


def test_a_number_with_a_colon_elsewhere_is_no_rank() -> None:
    assert [d.rank for d in read("steps:\n```\n  1:\n    f (a.py:1)\n    g (b.py:2)\n```\n")] in ([None], [])


def test_that_is_rank_six_speaks_of_the_stack_above() -> None:
    text = 'Thread 5005 (idle): "MainThread"\n    f (a.py:1)\n    g (b.py:2)\n\nThat is rank 6. On rank 7 I get\n\n'
    text += 'Thread 5006 (idle): "MainThread"\n    h (c.py:3)\n'
    assert told(text) == [(6, ["f", "g"]), (7, ["h"])]


def test_headings_name_roles_and_lines_below_them_top_frames_or_others() -> None:
    text = (
        "### learner\ntop frame: `recv (c.py:250)` from `get_batch (l.py:77)`\n### actor 3\ntop frame: `acquire (t.py:3)` from `put (b.py:4)`\n"
        "### actor 5\nsame as actor 3\n"
    )
    assert told(text) == [("learner", ["recv", "get_batch"]), ("actor 3", ["acquire", "put"]), ("actor 5", ["acquire", "put"])]


def test_short_ranks_with_equal_signs_in_one_line() -> None:
    assert told("r0=barrier@ckpt.py:90, r1=_save@ckpt.py:71, r2=barrier@ckpt.py:90\n") == [(0, ["barrier"]), (1, ["_save"]), (2, ["barrier"])]


def test_who_enters_now_stands_there_beside_those_that_wait() -> None:
    waits = "ranks 4-5 are already blocked in `barrier` in `train` (loop.py:55).\n"
    assert [who for who, _ in told(f"Ranks 0-1 enter `bcast_object` in `load` (m.py:2), {waits}")] == [4, 5, 0, 1]
    assert [who for who, _ in told(f"Ranks 0-1 enter `bcast_object` and then `save` in `load` (m.py:2), {waits}")] == [4, 5]


def test_what_somebody_types_at_gdb_shows_the_process_above() -> None:
    text = 'Thread 611 (idle): "MainThread"\n    wait (threading.py:320)\n    main (s.py:12)\n\n'
    text += "(gdb) thread 9\n(gdb) bt\n#0  0x00007f10 in ioctl () from /lib/libc.so.6\n"
    assert [(d.pid, [len(t.frames) for t in d.threads]) for d in read(text)] == [(611, [2, 1])]
