"""Forms that people give to stacks, one short text each: what is read of it."""

from __future__ import annotations

import textwrap

import pytest

from ray_rl_debug.formats.dump import Dump
from ray_rl_debug.formats.pasted.read import read


def found(text: str) -> list[Dump]:
    return read(textwrap.dedent(text).strip("\n"))


def stacks(text: str) -> list[list[str]]:
    """Function and line of each frame, innermost first, of each thread."""
    return [[f"{function}:{line}" for function, _, line in t.frames] for d in found(text) for t in d.threads]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Thread 7 (idle): "MainThread"\n    f (a.py:1)\n    g (b.py:2)', [["f:1", "g:2"]]),
        ("Thread 7 (active)\n    f (a.py:1)", [["f:1"]]),
        ("Thread (idle):\n    f (a.py:1)", [["f:1"]]),
        ("Thread 7\n    f (a.py:1)", [["f:1"]]),
        ("Thread (idle): rglob (pathlib.py) <- index_folder (indexer.py)", [["rglob:0", "index_folder:0"]]),
        ("Thread 7 (idle)\nThread 8 (active)\n    f (a.py:1)", [["f:1"]]),
        ("Thread 7 (idle)\nThread 8 (idle)\n    f (a.py:1)", [["f:1"], ["f:1"]]),
        ("Thread 7 (idle)\n    0x7caaa50b1a9b (?)   ← no symbol\n    f (a.py:1)", [["0x7caaa50b1a9b:0", "f:1"]]),
        ("Thread 7 (idle)\n    pthread_cond_timedwait\n    f (a.py:1)", [["pthread_cond_timedwait:0", "f:1"]]),
        ('Current thread 0x7f (most recent call first):\n  File "a.py", line 1 in f  File "b.py", line 2 in g', [["f:1", "g:2"]]),
        (
            'Traceback (most recent call last):\n  File "b.py", line 2, in g\n    f()\n  File "a.py", line 1, in f\nKeyboardInterrupt',
            [["f:1", "g:2"]],
        ),
        ("a.py:1 in f\nb.py:2 in <module>", [["f:1", "<module>:2"]]),
        ("b.py:2 in main\ntorch/distributed/distributed_c10d.py:9 in barrier", [["barrier:9", "main:2"]]),
        ("main (b.py:2) → f (a.py:1)", [["f:1", "main:2"]]),
        ("f (a.py:1)|g (b.py:2)|", [["f:1", "g:2"]]),
        ("f @ a.py:1\ng @ b.py:2", [["f:1", "g:2"]]),
        ("1. f (a.py:1)\n2. ...\n3. g (b.py:2)", [["f:1", "g:2"]]),
        ("> Thread 7 (idle)\n>     f (a.py:1)", [["f:1"]]),
        ("#0  0x7f in poll () from /lib/libc.so.6\n#1  0x7f in g (x=1) at g.c:3", [["poll:0", "g:3"]]),
        ("frame #0: 0x00007f libc.dylib`__wait + 8\nframe #1: 0x00007f x.so`g(int) + 1 at g.c:3:5", [["__wait:0", "g(int):3"]]),
        ("#0 all_reduce from /x/c10d.py:3\n#1 f from /x/a.py:1", [["all_reduce:3", "f:1"]]),
        ("frame #0: c10::Error(std::string) + 0x96 (0x7f3b in /x/libc10.so)", [["c10::Error(std::string):0"]]),
        ("cat /proc/7/stack\n[<0>] futex_wait+0x1/0x2\n[<0>] do_futex+0x1/0x2", [["futex_wait:0", "do_futex:0"]]),
        ("```Process 7: x\nThread 7 (idle)\n    f (a.py:1)\n```", [["f:1"]]),
        ('Thread 7 (idle): "MainThread"\n    f (a.py:1)\n    g (b.py:2)\n\n    h (c.py:3)', [["f:1", "g:2", "h:3"]]),
        ('(W pid=7) Traceback (most recent call last):\n(W pid=7)   File "a.py", line 1, in f [repeated 3x across cluster]', [["f:1"]]),
        (
            "Thread 5 (idle)\n    ... f (a.py:1)\n    …g (b.py:2)\n    h (c.py:3) ...\n    [...]\n    i (d.py:4) x2\n    j  [e.py:5]",
            [["f:1", "g:2", "h:3", "i:4", "j:5"]],
        ),
        ("  /x/a.py(9)<module>()\n-> main()\n> /x/b.py(3)f()\n-> work()", [["f:3", "<module>:9"]]),
        ("P12;T13;/x/a.py:<module>:9;/x/b.py:f:3 120", [["f:3", "<module>:9"]]),
        ('process 7:"python a.py";thread (0x7f): MainThread;<module> (a.py:9);f (b.py:3) 12', [["f:3", "<module>:9"]]),
        ('worker-0 >> [rank0]:   File "b.py", line 2, in g\nworker-0 >> [rank0]:   File "a.py", line 1, in f', [["f:1", "g:2"]]),
        ("node12: Thread 7 (idle)\nnode12:     f (a.py:1)", [["f:1"]]),
        ('  File "a.py", line 1, in f', []),
        ('  File "b.py", line 2, in g\n    f()\n  File "a.py", line 1, in f\nValueError: x', [["f:1", "g:2"]]),
        ("see train.py:33 for the reason", []),
        ("the call f (in a.py:33) is slow", []),
        ("W1122 foo.py:12] something happened", []),
        ("train.py:33: UserWarning: careful", []),
        ("I changed foo (bar.py:3) yesterday", []),
        ("one frame (a.py:1) alone", []),
    ],
)
def test_stacks(text: str, expected: list[list[str]]) -> None:
    assert stacks(text) == expected


def test_a_text_whose_lines_a_form_has_joined() -> None:
    text = 'it hangs ``` Process 18: x Python v3.12.9 (bin/python) Thread 18 (active+gil): "MainThread" f (a.py:1) g (b.py:2)'
    text += ' Thread 19 (idle): "T" h (c.py:3)'
    (dump,) = found(text)
    assert (dump.pid, [len(t.frames) for t in dump.threads]) == (18, [2, 1])


def test_names_above_and_on_the_line_of_a_stack() -> None:
    dumps = found("""
        ranks [0, 2]  stopped at  mesh.py:6954 in get_max_radius
                via  swarm.py:3786 in migrate
        rank  [1]     stopped at  swarm.py:3801 in migrate

        ### DP1 TP3 (pid 77)
        f (a.py:1)
        g (b.py:2)
    """)
    assert [(d.rank, d.label, d.pid, len(d.threads[0].frames)) for d in dumps] == [
        (0, "rank_0", None, 2),
        (2, "rank_2", None, 2),
        (1, None, None, 1),
        (None, "DP1_TP3", 77, 2),
    ]


@pytest.mark.parametrize(
    ("line", "kind", "count", "ranks"),
    [
        ("7 ranks identical", "same", 7, ()),
        ("all 8 processes show the same stack", "same", 8, ()),
        ("same on rank 1-3", "same", None, (1, 2, 3)),
        ("Ranks 4, 6 and 7: same as above", "same", None, (4, 6, 7)),
        ("…on every rank except rank 0", "except", None, (0,)),
        ("30012 and 30013 show the same", "same", 3, ()),
    ],
)
def test_remarks_below_a_stack(line: str, kind: str, count: int | None, ranks: tuple[int, ...]) -> None:
    (dump,) = found(f"```\nThread 7 (idle)\n    f (a.py:1)\n```\n{line}\n")
    (remark,) = [said for _, said in dump.said]
    assert (remark.kind, remark.count, remark.ranks) == (kind, count, ranks)


@pytest.mark.parametrize(
    ("line", "apart_s"),
    [
        ("Same picture 10 minutes later on all 4 ranks.", 600.0),
        ("the stacks were identical again after 30 s", 30.0),
        ("Half an hour later: same lines", 1800.0),
    ],
)
def test_a_later_look_told_in_words(line: str, apart_s: float) -> None:
    first, again = found(f"```\nThread 7 (idle)\n    f (a.py:1)\n```\n{line}\n")
    assert (first.said, again.after_s, len(again.threads)) == ([], apart_s, 1)


def test_two_looks_that_are_told_above_their_stacks() -> None:
    told = "Stack traces at 14:02 and 14:09 are exactly the same:\n\nThread 7 (idle)\n    f (a.py:1)\n\nThread 8 (idle)\n    g (a.py:2)\n"
    dumps = found(told)
    assert [d.after_s for d in dumps] == [None, 420.0]
    assert [[t.frames[0][0] for t in d.threads] for d in dumps] == [["f", "g"]] * 2


@pytest.mark.parametrize("line", ["we restarted it, same place 10 minutes later", "same error 10 minutes later on all 4 ranks"])
def test_a_run_that_hangs_anew_is_no_later_look(line: str) -> None:
    assert len(found(f"```\nThread 7 (idle)\n    f (a.py:1)\n```\n{line}\n")) == 1


@pytest.mark.parametrize("line", ["we tried 2 nodes", "rank 3 prints nothing", "It worked with 4 GPUs.", "the loss is the same as before"])
def test_sentences_that_are_no_remark(line: str) -> None:
    (dump,) = found(f"```\nThread 7 (idle)\n    f (a.py:1)\n```\n{line}\n")
    assert dump.said == []


@pytest.mark.parametrize(
    "text",
    [
        "$ py-spy dump --pid 99\nError: Failed to suspend process\nReason: EPERM: Operation not permitted",
        "Pyspy failed (py-spy dump --native --pid 99). Error: Error: Failed to get stack traces\n\nCaused by:\n    0: UNW_EBADREG: bad register",
        "[2026-08-02 06:06:21 TP2] Pyspy failed to dump PID 99. Error: /bin/dash: 1: py-spy: not found",
        "py-spy dump --pid 99\nError: No such file or directory (os error 2)",
        "gdb -p 99\nptrace: Operation not permitted.",
    ],
)
def test_what_a_tool_said_that_failed(text: str) -> None:
    (dump,) = found(text)
    assert (dump.pid, dump.threads, {s.kind for _, s in dump.said}) == (99, [], {"unread"})


def test_an_error_of_the_program_is_no_failed_dump() -> None:
    assert found("PermissionError: [Errno 13] Permission denied: '/data/x'\nloading model on rank 0") == []


def test_lines_of_several_ranks_are_kept_apart() -> None:
    lines = ("Current thread 0x7f (most recent call first):", '  File "a.py", line 1 in f', '  File "b.py", line 2 in g')
    text = "\n".join(f"[rank{rank}]: {line}" for line in lines for rank in (0, 1))
    assert [(d.rank, len(d.threads[0].frames)) for d in read(text)] == [(0, 2), (1, 2)]


def test_children_of_multiprocessing_and_a_tree_of_processes() -> None:
    dumps = found("""
        Process SpawnProcess-15:
        Traceback (most recent call last):
          File "/x/process.py", line 317, in _bootstrap
        KeyboardInterrupt
        Process Process-3:2:
        Traceback (most recent call last):
          File "/x/process.py", line 318, in _bootstrap
        KeyboardInterrupt
        1130071          \\_ python3.11
        1130350          |   \\_ MPD worker 0 <defunct>
    """)
    assert [(d.pid, d.label, d.state, len(d.threads)) for d in dumps] == [
        (None, "SpawnProcess-15", None, 1),
        (None, "Process-3:2", None, 1),
        (1130071, None, None, 0),
        (1130350, None, "Z", 0),
    ]


def test_system_calls_of_strace() -> None:
    (dump,) = found("""
        sudo strace -p 4007
        strace: Process 4007 attached
        futex(0x161ee20, FUTEX_WAIT, 2147483648, NULL^Cstrace: Process 4007 detached
         <detached ...>
    """)
    assert (dump.pid, [(t.tid, t.call) for t in dump.threads]) == (4007, [(4007, "futex")])


def test_states_and_wait_channels() -> None:
    dumps = found("""
          PID STAT WCHAN          CMD
         4008 Dl   nfs_wait_bit   python train.py
         4009 Sl   futex_wait     python train.py
    """)
    assert [(d.pid, d.state, d.threads[0].wchan, d.title) for d in dumps] == [
        (4008, "D", "nfs_wait_bit", "python train.py"),
        (4009, "S", "futex_wait", "python train.py"),
    ]


def test_a_second_dump_of_a_process_is_another_sample() -> None:
    one = 'Process 7: x\nThread 7 (idle): "MainThread"\n    f (a.py:1)\n'
    first, second = found(f"{one}\n30 s later:\n\n{one}")
    assert (first.pid, second.pid, first.after_s, second.after_s) == (7, 7, None, 30.0)


def test_one_stack_under_the_heads_of_several_processes() -> None:
    dumps = found("""
        3 in:
        ```
        Thread 11 (active): "MainThread"
        Thread 12 (active): "MainThread"
            broadcast (c10d.py:1)
            evaluate (training.py:9)
        ```
    """)
    assert [(d.pid, len(d.threads[0].frames), [s.count for _, s in d.said]) for d in dumps] == [(11, 2, [2]), (12, 2, [])]


def test_a_table_with_rows_that_are_as_the_one_above() -> None:
    dumps = found("""
        | rank | pid | where |
        |---|---|---|
        | 0 | 90 | `state.py:584` `_broadcast` |
        | 1 | 91 | `state.py:614` `_receive` |
        | 2 | 92 | same |

        rank 0 in full:
        ```
        broadcast (c10d.py:2437)
        _broadcast (state.py:584)
        ```
    """)
    assert [(d.rank, d.pid, [f[0] for f in d.threads[0].frames]) for d in dumps] == [
        (1, 91, ["_receive"]),
        (2, 92, ["_receive"]),
        (0, 90, ["broadcast", "_broadcast"]),
    ]


def test_the_first_frame_on_the_line_of_its_name() -> None:
    dumps = found("""
        DP0,2:     broadcast  (c10d.py:2841)
        DP1:       metadata   (backend.py:746)   <- .max().item(), a wait for the GPU
                     prepare (worker.py:163)
        PP0  isend (c10d.py:2552)
             send_dict (state.py:2384)
    """)
    assert [(d.label, len(d.threads[0].frames)) for d in dumps] == [("DP0", 1), ("DP2", 1), ("DP1", 2), ("PP0", 2)]


def test_ranks_and_places_in_sentences() -> None:
    dumps = found("""
        **Rank 0** – stuck in `torch.distributed.barrier()` (`trainer.py:120`)
        **Rank 1** – stuck in `load` (`ckpt.py:88`)
        Rank 2 @ trainer.py:120 (barrier)
        rank3: trainer.py:120 barrier
    """)
    assert [(d.rank, d.threads[0].frames[0]) for d in dumps] == [
        (0, ("torch.distributed.barrier", "trainer.py", 120)),
        (1, ("load", "ckpt.py", 88)),
        (2, ("barrier", "trainer.py", 120)),
        (3, ("barrier", "trainer.py", 120)),
    ]


def test_of_two_prefixes_the_inner_one_wrote_the_line() -> None:
    (dump,) = found("""
        (Server pid=40, ip=10.0.0.1) (EngineCore_DP0 pid=47) ERROR 05-22 14:41:15 [core.py:1102] Current thread 0x7f (most recent call first):
        (Server pid=40, ip=10.0.0.1) (EngineCore_DP0 pid=47) ERROR 05-22 14:41:15 [core.py:1102]   File "a.py", line 1 in f
    """)
    assert (dump.pid, dump.title, dump.node) == (47, "VLLM::EngineCore_DP0", "10.0.0.1")


def test_what_other_tools_print_with_files_and_lines() -> None:
    text = """
        ./venv/lib/torch/distributed/distributed_c10d.py:1404:    pg_store = _world.pg_map.get(pg, None)
        ./venv/lib/torch/distributed/distributed_c10d.py:2244:    if _world.pg_map.get(pg, None) is None:
        /x/torch/distributed/distributed_c10d.py:270: UserWarning: Device capability
        [2023-06-13 09:16:21,299] {distributed_c10d.py:228} INFO - Added key to store for rank: 1
        [2024-11-13 07:00:26,588] [INFO] [real_accelerator.py:203:get_accelerator] Setting ds_accelerator to cpu
        tests/test_a.py::test_x PASSED
          File "a.py", line 3
            x = (
        SyntaxError: invalid syntax
        src/foo.c:12:3: error: unknown type name
        2026-11-21 00:20:43,860 SUCC scripts.py:1084 -- ----------
        2026-11-21 00:20:43,860 SUCC scripts.py:1085 -- Ray runtime started.
        2026-11-21 00:20:43,860 INFO scripts.py:1086 -- (to connect)
        | SKIP_CHECK | leaves out the check | `reduce (utils.py:430)` |
        a.py:3: error: Name "x" is not defined
        a.py:4: note: see there
    """
    assert found(text) == []


def test_an_error_inside_an_error() -> None:
    (dump,) = found("""
        Traceback (most recent call last):
          File "a.py", line 1, in f
        RuntimeError: cannot start: Traceback (most recent call last):
          File "b.py", line 2, in g
        OSError: no socket
    """)
    assert [s.text for _, s in dump.said if s.kind == "failed"] == [
        "RuntimeError: cannot start: Traceback (most recent call last):",
        "OSError: no socket",
    ]


def test_words_of_a_failed_dump_that_name_nobody_accuse_nobody() -> None:
    assert found("py-spy dump fails with EPERM in our container, so I used gdb.") == []


def test_a_stack_in_the_middle_of_a_large_log_is_found_with_its_line() -> None:
    noise = "[2026-01-01 00:00:00] INFO core.py:12 request 200 OK\n" * 20_000
    (dump,) = read(f'{noise}py-spy of rank 4:\nThread 7 (idle): "MainThread"\n    f (a.py:1)\n{noise}')
    assert (dump.pid, dump.rank, dump.line, len(dump.threads[0].frames)) == (7, 4, 20_002, 1)


def test_a_profile_is_two_looks_at_each_thread() -> None:
    dumps = found("""
        <module> (a.py:9);step (a.py:3);forward (m.py:1) 70
        <module> (a.py:9);step (a.py:4);wait (q.py:2) 40
        <module> (a.py:9);log (a.py:5) 1
        _bootstrap (threading.py:1);_bootstrap_inner (threading.py:2);run (threading.py:3);watch (w.py:1) 110
    """)
    assert [[t.frames[0][0] for t in d.threads] for d in dumps] == [["forward", "watch"], ["wait", "watch"]]
    assert [t.name for t in dumps[0].threads] == ["MainThread", None]


def test_a_progress_bar_that_rewrote_its_line_for_days() -> None:
    bar = "\r".join(f" {n % 100}%|#### | {n}/100000 [01:00<02:00, 1.0it/s]" for n in range(5_000))
    (dump,) = read(f'{bar}\rThread 7 (idle): "MainThread"\n    f (a.py:1)\n')
    assert (dump.pid, dump.line) == (7, 1)


def test_the_words_of_gdbs_python_for_a_wait_are_frames_of_it() -> None:
    rows = "#4 Waiting for a lock (e.g. GIL)\n#7 Frame 0x7f85, for file /usr/lib64/python2.7/Queue.py, line 118, in put (self=<Queue()>)\n"
    (dump,) = read(rows)
    assert [f[0] for f in dump.threads[0].frames] == ["PyThread_acquire_lock", "put"]


@pytest.mark.parametrize("shown", ["", "#0  0x00007fa440cb3709 in poll () from /lib/libc.so.6\n"], ids=["alone", "with its frame"])
def test_threads_to_which_somebody_switches_are_of_one_process(shown: str) -> None:
    frames = "#0  0x00007fa440cb3709 in poll () from /lib/libc.so.6\n#1  0x000055d1c1f5d2a1 in work () at w.c:2\n"
    text = "".join(
        f"(gdb) t {number}\n[Switching to thread {number} (Thread 0x7fa4 (LWP {lwp}))]\n{shown}(gdb) bt\n{frames}"
        for number, lwp in ((1, 851), (18, 931))
    )
    (dump,) = read(text)
    assert [(t.tid, len(t.frames)) for t in dump.threads] == [(851, 2), (931, 2)]
