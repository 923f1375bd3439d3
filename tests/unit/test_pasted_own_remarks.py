"""What people write into and around the stacks that they paste: remarks behind frames, comments, words between names."""

from __future__ import annotations

import pytest

from ray_rl_debug.formats.pasted.read import read


def told(text: str) -> list[tuple[str | None, list[str]]]:
    """Who is named, and the functions of the first thread, innermost first."""
    return [(d.label or (str(d.rank) if d.rank is not None else None), [f[0] for f in d.threads[0].frames]) for d in read(text) if d.threads]


def test_a_library_of_which_nothing_is_known_is_read_before_a_remark_in_brackets() -> None:
    text = """Thread 12 (idle): "MainThread"
    pthread_cond_wait (libc.so.6)
    0x7caaa50b1a9b (?)                  <- C++ without symbols (NCCL)
    all_gather (torch/distributed/distributed_c10d.py:4193)
"""
    assert told(text) == [(None, ["pthread_cond_wait", "0x7caaa50b1a9b", "all_gather"])]


def test_an_arrow_far_behind_a_frame_begins_a_remark() -> None:
    text = """Thread 0x1F90 (active): "MainThread"         <- the loop, since 13:49
    stop_stream (pyaudio/__init__.py:500)          <- pa.stop_stream(), does not return
    close (audio_interface.py:1445)                <- Playback.close()
    on_message (SERVER:1136)                       <- handler of 's:'
"""
    assert told(text) == [(None, ["stop_stream", "close", "on_message"])]


def test_names_above_and_below_a_frame_in_a_block_of_code_are_frames_too() -> None:
    text = (
        "One rank showed:\n\n```\ncuEventSynchronize\ncudaEventSynchronize\nsynchronize (torch/cuda/streams.py:231)\nprocess_batch\nevent_loop\n```\n"
    )
    assert told(text) == [(None, ["cuEventSynchronize", "cudaEventSynchronize", "synchronize", "process_batch", "event_loop"])]


def test_names_in_a_block_of_code_without_a_frame_are_none() -> None:
    assert told("Needed:\n\n```\ntorch_geometric\nray_tracer\n```\n\n    wait (threading.py:320)\n") == []


def test_a_comment_tells_who_stands_where_without_marking_the_code() -> None:
    text = """
    # A throttle by the clock is not: ranks come into the window at
    # different times, and the next broadcast meets the pending all_reduce
    # (seen as TP0 stuck in broadcast_pyobj vs TP1-3 stuck in all_reduce).
"""
    assert told(text) == [("TP0", ["broadcast_pyobj"]), *((f"TP{n}", ["all_reduce"]) for n in (1, 2, 3))]


def test_numbers_with_a_plus_and_the_next_rank_behind_a_comma() -> None:
    text = "* a run of ours: rank 1 stuck in `chunk_rule`, rank 0+2-4 stuck in `all_reduce`\n"
    assert told(text) == [("1", ["chunk_rule"]), *((f"rank_{n}", ["all_reduce"]) for n in (0, 2, 3, 4))]


def test_a_name_with_its_line_and_the_ranks_above_n() -> None:
    one = "rank 0 stuck at `barrier` inside `_build_index:1141`"
    text = f"Pinned down on the head node ({one},\nrank N+ already in `train_step → __next__ → get`). Reverted.\n"
    assert told(text) == [("0", ["barrier", "_build_index"]), ("rank n+", ["get", "__next__", "train_step"])]


def test_a_heading_with_code_is_no_comment() -> None:
    assert told("# Rank 0 stuck in all_reduce\n\nThe fix of `f()` is below.\n\n# Rank 1 would be in step\n") == [("0", ["all_reduce"])]


def test_a_thread_that_somebody_goes_to_below_the_list_of_all_is_that_of_the_list() -> None:
    text = """(gdb) info threads
* 1    Thread 0x7f0 (LWP 771) "python"        0x00007f11 in futex_wait () from /lib64/libc.so.6
  2    Thread 0x7f1 (LWP 790) "pt_autograd_0" 0x00007f12 in pthread_cond_wait () from /lib64/libc.so.6
(gdb) thread 2
(gdb) bt
#0  0x00007f12 in pthread_cond_wait () from /lib64/libc.so.6
#1  0x00007f20 in torch::autograd::ReadyQueue::pop() () from /opt/libtorch_cpu.so
"""
    (dump,) = read(text)
    assert [(t.tid, [f[0] for f in t.frames]) for t in dump.threads] == [
        (771, ["futex_wait"]),
        (790, ["pthread_cond_wait", "torch::autograd::ReadyQueue::pop()"]),
    ]


def test_the_number_of_something_else_before_a_rank_is_none_of_its() -> None:
    for head in ("boxA / gpu0 / rank 3", "pid 4103, rank 3:"):
        assert [d.rank for d in read(f"Attached:\n\n{head}\n\nf (a.py:1)\ng (a.py:2)\n")] == [3]
    assert [d.rank for d in read("rank0 / rank 3:\n    f (a.py:1)\n    g (a.py:2)\n")] == [0, 3]


def test_source_above_the_first_frame_that_was_copied_is_none() -> None:
    text = """```
    self._bootstrap_inner()
  File "/w/lib/threading.py", line 1075, in _bootstrap_inner
    self.run()
  File "/w/lib/tqdm/_monitor.py", line 60, in run
    self.was_killed.wait(self.sleep_interval)
```
"""
    assert told(text) == [(None, ["run", "_bootstrap_inner"])]


GLUED = '卡死栈信息Thread 1007 (idle): "MainThread"\nnanosleep (libc.so.6)\nitem (libtorch.so)\n'
COMMENTS = """# MAGIC [rank3]: [rank3]:   File "/w/a.py", line 68, in first
# MAGIC [rank3]: [rank3]:     dist.barrier()
# MAGIC [rank3]: [rank3]:   File "/w/b.py", line 81, in wrapper
# MAGIC [rank3]: [rank3]:     return f()
"""
SLASHES = "It showed\n\n    select (selectors.py:415) / run (subprocess.py:550)\n    / test_spans (test_otel.py:47)\n\nfor an hour.\n"
BOLD = "- **Rank 1 is stuck inside `loss.backward()`.** Inside of it `Reducer::hook` is called.\n- **Rank 0 is stuck in `loss.item()`**.\n"
CARETS = """[rank0]:  File "/w/train.py", line 69, in <module>
[rank0]:    main()
[rank0]:    ~~~~^^
[rank0]:  File "/w/train.py", line 55, in main
"""
LOST_LINE = """  File "/w/a.py", line 650, in _fit
    self._run(x)  File "/w/a.py", line 1039, in _run
  self.strategy.setup()
  File "/w/b.py", line 153, in setup
    go()
"""
CHAIN = "Every `py-spy dump` of the web shows\nthe call stack `_dispatch → _handle →\n_send` with its ids.\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GLUED, [(None, ["nanosleep", "item"])]),
        (COMMENTS, [("3", ["wrapper", "first"])]),
        (SLASHES, [(None, ["select", "run", "test_spans"])]),
        (BOLD, [("1", ["loss.backward"]), ("0", ["loss.item"])]),
        ("A `py-spy dump` of it found the speech thread parked in\n`_raw_write` for long.\n", [(None, ["_raw_write"])]),
        (CHAIN, [(None, ["_send", "_handle", "_dispatch"])]),
        (CARETS, [("0", ["main", "<module>"])]),
        (LOST_LINE, [(None, ["setup", "_run", "_fit"])]),
    ],
    ids=["glued-to-words", "kept-as-comments", "slashes-over-lines", "end-of-bold", "the-thread", "chain-of-a-tool", "carets", "lost-new-line"],
)
def test_forms_of_real_threads(text: str, expected: list[tuple[str | None, list[str]]]) -> None:
    assert told(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "#   - Bug B: a silent hang (rank 0 stuck in .item() after backward;\n#     other ranks stuck in metrics all_reduce).\n",
            [("0", [".item"]), ("other ranks", ["all_reduce"])],
        ),
        (
            "A two-sided deadlock (rank 0 stuck in its own gather\n`recv_frame` call, rank 1 stuck in `FirstLayer`'s forward hop).\n",
            [("0", ["recv_frame"]), ("1", ["FirstLayer"])],
        ),
        ("**证据**: py-spy 显示全部 8 个 rank 一字不差卡在 `_decide` 的 `all_reduce` 调用。\n", [("全部 8 个 rank", ["all_reduce", "_decide"])]),
        ("On rank 3, rank 4 stuck in `step`.\n", [("4", ["step"])]),
    ],
    ids=["comment-of-a-script", "behind-a-comma", "chinese-genitive", "a-list-is-one"],
)
def test_sentences_without_frames(text: str, expected: list[tuple[str | None, list[str]]]) -> None:
    assert told(text) == expected


PROCESS = """Process 11: python train.py
Python v3.11.9 (/usr/bin/python3.11)

Thread 11 (active): "MainThread"
    all_gather (torch/distributed/distributed_c10d.py:4183)
"""


@pytest.mark.parametrize(
    ("heading", "alike"),
    [
        ("py-spy of rank 0 (rank 1 and 2 are identical):", (1, 2)),
        ("Rank 0 (ranks 1-2 look the same):", (1, 2)),
        ("rank 0 (others identical):", ()),
        ("ranks 0-2 (identical):", None),
        ("rank 0:", None),
    ],
)
def test_a_heading_over_the_head_of_a_process_tells_who_else_is_alike(heading: str, alike: tuple[int, ...] | None) -> None:
    (dump, *_) = read(f"{heading}\n\n{PROCESS}")
    assert [said.ranks for _, said in dump.said if said.kind == "same"] == ([] if alike is None else [alike])


@pytest.mark.parametrize(
    ("sentence", "beside"),
    [
        ("Rank 3 is still in `score_with_judge` -> `requests.post`.", ["requests.post"]),
        ("Rank 0 is still in `score_with_judge` -> `requests.post`.", []),
        ("Rank 3 is in `all_gather`.", []),
        ("The trainer is still in `score_with_judge`.", []),
    ],
    ids=["a rank of its own", "the rank that is shown", "the place that is shown", "nobody's number"],
)
def test_a_sentence_beside_stacks_tells_of_a_rank_that_none_of_them_shows(sentence: str, beside: list[str]) -> None:
    shown = read(f"rank 0:\n\n{PROCESS}\n{sentence}\n")
    assert [d.threads[0].frames[0][0] for d in shown] == ["all_gather", *beside]


def test_a_traceback_behind_the_lines_of_another_part_is_its_own() -> None:
    text = """Thread 4411 (idle): "rollout"
    select (selectors.py:468)
    run (rollout.py:4)

[2026-11-21 09:12:44 TP0] Decode batch. #running-req: 12
[2026-11-21 09:17:50 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/scheduler.py", line 880, in event_loop_overlap
    result = self.run_batch(batch)
"""
    assert [d.title for d in read(text) if d.threads][1:] == ["sglang::scheduler_TP1"]


def test_processes_behind_one_word_pid() -> None:
    stack = PROCESS[PROCESS.index("Thread") :]
    assert [d.pid for d in read(f"pid 811, 812 and 813 all look like this:\n\n{stack}")] == [811, 812, 813]
