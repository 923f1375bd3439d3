"""Stacks in the words of notebooks, rich, test runners, programs' own dumpers and collectors of logs."""

from __future__ import annotations

import json
import re
import textwrap

import pytest

from ray_rl_debug.formats.dump import Dump
from ray_rl_debug.formats.pasted.read import read

STACK = '  File "/w/a.py", line 98, in main\n    run()\n  File "/w/a.py", line 20, in run\n    lock.acquire()\n'


def found(text: str) -> list[Dump]:
    return read(textwrap.dedent(text).strip("\n"))


def places(dump: Dump) -> list[str]:
    return [f"{function}:{line}" for function, _, line in dump.threads[0].frames]


@pytest.mark.parametrize(
    ("head", "other"),
    [
        ("~~~~~~~ Stack of MainThread (139812751046464) ~~~~~~~", "~~~~~~~ Stack of feeder (139812340012800) ~~~~~~~"),
        ('---------- Thread 140012 "MainThread" hangs ----------', '---------- Thread 140013 "feeder" hangs ----------'),
        ("Thread: MainThread (140012345678)", "Thread: worker_1 (140012345679)"),
        ("Thread MainThread(140123456789)", "Thread Thread-3(140123456780)"),
        ("--- Thread MainThread (id=140012345) ---", "--- Thread feeder (id=140012346) ---"),
        ("=== Thread: MainThread (daemon: False) ===", "=== Thread: feeder (daemon: True) ==="),
        ("Thread 140123456789 (MainThread):", "Thread 140123456780 (worker_1):"),
        ("Thread <_MainThread(MainThread, started 140123456789)>:", "Thread <Thread(worker_1, started daemon 140123456780)>:"),
        ("Name: MainThread Ident: 1401234567 Daemon: False", "Name: worker_1 Ident: 1401234568 Daemon: True"),
        ("Thread MainThread:", "Thread worker_1:"),
    ],
)
def test_threads_that_a_program_named_itself_are_of_one_process(head: str, other: str) -> None:
    (dump,) = found(f"{head}\n{STACK}\n{other}\n{STACK}")
    assert [len(t.frames) for t in dump.threads] == [2, 2]
    assert dump.threads[0].name == "MainThread"
    assert dump.threads[0].frames[0] == ("run", "/w/a.py", 20)


@pytest.mark.parametrize("line", ["Thread safety:", "The Thread-1 hangs", "the main thread is idle", "stack trace of the failed collective:"])
def test_sentences_about_threads_are_no_heads(line: str) -> None:
    assert found(f"{line}\nand nothing else\n") == []


def test_a_traceback_of_ipython() -> None:
    (dump,) = found("""
        KeyboardInterrupt                         Traceback (most recent call last)
        Cell In[3], line 5
              4 run = start()
        ----> 5 run.finish()

        File ~/venv/lib/python3.11/site-packages/wandb/sdk/wandb_run.py:450, in _run_decorator._noop.<locals>.wrapper(self, *args, **kwargs)
            447         warn(message, repeat=False)
        --> 450 return func(self, *args, **kwargs)

        File /usr/lib/python3.11/threading.py:331, in Condition.wait(self, timeout)
            330     if timeout > 0:
        --> 331         gotit = waiter.acquire(True, timeout)

        KeyboardInterrupt:
    """)
    assert places(dump) == ["wait:331", "wrapper:450", "<module>:5"]


def test_an_older_traceback_of_ipython() -> None:
    (dump,) = found("""
        KeyboardInterrupt                         Traceback (most recent call last)
        <ipython-input-3-ab12cd> in <module>
        ----> 1 train()

        ~/w/train.py in train(n)
             11     for _ in range(n):
        ---> 12         step()

        /usr/lib/python3.8/threading.py in wait(self, timeout)
        --> 302                 waiter.acquire()
    """)
    assert [f for f, _, _ in dump.threads[0].frames] == ["wait", "train", "<module>"]


def test_a_traceback_that_rich_has_drawn() -> None:
    (dump,) = found("""
        ╭───────────────── Traceback (most recent call last) ─────────────────╮
        │ /w/dpo/train.py:61 in <module>                                      │
        │                                                                     │
        │   60 if __name__ == "__main__":                                     │
        │ ❱ 61 │   main()                                                     │
        │ ╭────────── locals ──────────╮                                      │
        │ │ token = 'secret.py:3 in x' │                                      │
        │ ╰────────────────────────────╯                                      │
        │                                                                     │
        │ /venv/lib/python3.11/site-packages/huggingface_hub/file_down.py:7 in │
        │ hf_hub_download                                                     │
        │ ❱ 7 │   with FileLock(path):                                        │
        │                                                                     │
        │ /venv/lib/python3.11/site-packages/torch/distributed/distributed.py:3│
        │ 98 in barrier                                                       │
        ╰─────────────────────────────────────────────────────────────────────╯
        KeyboardInterrupt
    """)
    assert places(dump) == ["barrier:398", "hf_hub_download:7", "<module>:61"]


def test_lines_that_a_collector_keeps_in_json() -> None:
    lines = ["Thread 0x00007f01 (most recent call first):", '  File "/w/a.py", line 20 in run', '  File "/w/a.py", line 98 in <module>']
    (dump,) = read("\n".join(json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-03-02T04:11:20Z"}) for line in lines))
    assert places(dump) == ["run:20", "<module>:98"]


def test_two_programs_of_one_faulthandler_text() -> None:
    one = 'Thread 0x{} (most recent call first):\n  File "/w/{}.py", line 2 in f\n  File "/w/{}.py", line 9 in <module>\n'
    assert [len(d.threads) for d in found(one.format("7f01", "a", "a") + "\n" + one.format("7f02", "b", "b"))] == [1, 1]


@pytest.mark.parametrize("sign", [",", "\t", "   "])
def test_a_table_of_stacks_without_bars(sign: str) -> None:
    rows = [
        ("rank", "host", "pid", "stack (innermost first)"),
        ("0", "node1", "81", "f@a.py:1 < g@b.py:2"),
        ("1", "node2", "82", "h@c.py:3 < g@b.py:2"),
    ]
    dumps = read("\n".join(sign.join(row) for row in rows))
    assert [(d.rank, d.pid, d.node, places(d)) for d in dumps] == [(0, 81, "node1", ["f:1", "g:2"]), (1, 82, "node2", ["h:3", "g:2"])]


def test_output_of_many_machines_that_a_tool_has_folded() -> None:
    rule = "-" * 15
    same, other = found(f"{rule}\ngpu[01-03] (3)\n{rule}\nThread (idle)\n    f (a.py:1)\n{rule}\ngpu04\n{rule}\nThread (idle)\n    g (b.py:2)\n")
    assert (same.node, [s.count for _, s in same.said]) == ("gpu[01-03]", [3])
    assert (other.node, places(other)) == ("gpu04", ["g:2"])


def test_what_top_of_pyspy_shows_all_the_time() -> None:
    (dump,) = found("""
        Collecting samples from 'python train.py' (python v3.11.2)
        Total Samples 58100
          %Own   %Total  OwnTime  TotalTime  Function (filename)
        100.00% 100.00%   581.0s    581.0s   synchronize (torch/cuda/__init__.py)
          0.00% 100.00%   0.000s    581.0s   train (train.py)
          0.00%  12.00%   0.000s    70.0s   poll (helper.py)
    """)
    assert (dump.title, places(dump)) == ("python train.py", ["synchronize:0", "train:0"])


def test_a_kernel_stack_in_the_block_below_the_command() -> None:
    (dump,) = found("on 70121 `cat /proc/70121/stack`\n```\n[<0>] rpc_wait_bit_killable+0x1e/0xb0 [sunrpc]\n```\n")
    assert (dump.pid, places(dump)) == (70121, ["rpc_wait_bit_killable:0"])


def test_a_long_frame_that_gdb_has_broken() -> None:
    (dump,) = found("""
        #0  0x00007f01 in poll () from /lib64/libc.so.6
        #1  0x00007f02 in at::native::item(at::Tensor const&) [clone .isra.1] ()
           from /opt/torch/lib/libtorch_cpu.so
        #2  0x00007f03 in main () from /usr/bin/python3
    """)
    assert len(dump.threads[0].frames) == 3


def test_a_process_whose_threads_run_no_python() -> None:
    (dump,) = found('Process 255: uwsgi --master\nPython v3.7.3 (/venv/bin/uwsgi)\n\nThread 255 (idle): "uWSGIWorker1Core0"\n')
    assert (dump.pid, dump.threads, [s.kind for _, s in dump.said]) == (255, [], ["unread"])


@pytest.mark.parametrize("line", ["I have the same here (other model, other torch):", "run A, 2 GPUs:"])
def test_words_that_count_no_processes(line: str) -> None:
    dumps = found(
        f"Process 700: python a.py\nThread 700 (idle)\n    f (a.py:1)\n\n{line}\nProcess 31: python b.py\nThread 31 (idle)\n    g (b.py:2)\n"
    )
    assert [d.said for d in dumps] == [[], []]


@pytest.mark.parametrize(
    ("source", "calls"),
    [
        ("with self._lock:", ("__enter__",)),
        ("ok = self._lock.acquire(timeout=3)", ("acquire",)),
        ("if not done(x) and len(y):", ("done", "len")),
        ("with open(path) as f:", ("open",)),
        ("x = a + b", None),
    ],
)
def test_what_a_line_of_source_calls(source: str, calls: tuple[str, ...] | None) -> None:
    (dump,) = found(
        f'Traceback (most recent call last):\n  File "b.py", line 2, in g\n    f()\n  File "a.py", line 1, in f\n    {source}\nKeyboardInterrupt'
    )
    assert dump.threads[0].calls == calls


def test_the_source_of_an_outer_frame_is_not_that_of_the_innermost() -> None:
    (dump,) = found('Traceback (most recent call last):\n  File "b.py", line 2, in g\n    with lock:\n  File "a.py", line 1, in f\nKeyboardInterrupt')
    assert dump.threads[0].calls is None


@pytest.mark.parametrize("name", ["rank{}", "rank_{}"])
def test_ranks_between_two_rules_are_no_machines(name: str) -> None:
    rule, frames = "-" * 12, '  File "/w/a.py", line 12 in f\n  File "/w/a.py", line 98 in <module>\n'
    text = "".join(f"{rule}\n{name.format(i)}\n{rule}\nThread 0x00007f01 (most recent call first):\n{frames}\n" for i in range(2))
    assert [(d.rank, d.node) for d in read(text)] == [(0, None), (1, None)]


HUNG = """\
[812345.120001] INFO: task python3:20441 blocked for more than 122 seconds.
[812345.120020] task:python3         state:D stack:    0 pid:20441 ppid: 20300 flags:0x00004002
[812345.120025] Call Trace:
[812345.120028]  <TASK>
[812345.120031]  __schedule+0x24e/0x590
[812345.120038]  ? __queue_work+0x1/0x5
[812345.120044]  io_schedule+0x46/0x80
[812345.120070]  nfs_wb_all+0x2a/0x130 [nfs]
[812345.120090]  filp_close+0x3c/0x80
[812345.120110]  </TASK>
"""
OUT_OF_MEMORY = """\
[812400.000001] python3 invoked oom-killer: gfp_mask=0x140cca, order=0, oom_score_adj=0
[812400.000002] CPU: 3 PID: 7 Comm: python3 Tainted: P           OE
[812400.000003] Call Trace:
[812400.000004]  dump_stack_lvl+0x4a/0x63
[812400.000005]  oom_kill_process.cold+0xb/0x10
"""


def test_the_kernel_shows_the_stack_of_a_task_that_hangs() -> None:
    of_old = "python3         D    0 20441  20300 0x00004002"
    older = re.sub(r"task:python3 .*", of_old, HUNG).replace("[812345.", "Nov 21 10:00:00 gpu-17 kernel: [812345.")
    for text in (HUNG, older, f"{HUNG}{OUT_OF_MEMORY}"):
        (dump,) = read(text)
        assert (dump.pid, dump.state, dump.title) == (20441, "D", "python3")
        assert [function for function, _, _ in dump.threads[0].frames] == ["nfs_wb_all", "filp_close"]


def test_the_stack_over_which_the_kernel_ends_a_process_is_no_hang() -> None:
    assert read(OUT_OF_MEMORY) == []


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("proc 4013 -> rpc_wait_bit_killable D", "D"),
        ("pid=4013 state=D (disk sleep) wchan=rpc_wait_bit_killable", "D"),
        ("4013 (python3): rpc_wait_bit_killable, S", "S"),
        ("pid=4013 comm=python state=D wchan=rpc_wait_bit_killable", "D"),
        ("Process 4013 => rpc_wait_bit_killable", None),
    ],
)
def test_what_a_loop_of_ones_own_prints_of_wait_channels(text: str, state: str | None) -> None:
    (dump,) = read(f"where they sleep:\n{text}\n")
    assert (dump.pid, dump.state, dump.threads[0].wchan) == (4013, state, "rpc_wait_bit_killable")


def test_a_number_and_a_word_that_is_no_wait_channel() -> None:
    assert read("step 4013 -> reward_server_ready\npid 4013 reached wait_for_server in 3 s\n") == []


BLOCK = "\n\n```\n  acquire (threading.py:164)\n  {name} (cache.py:88)\n```\n\n"


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ("Thread A (update) holds `a_lock` and waits for `b_lock`:", "Thread B holds `b_lock` and waits for `a_lock`:", ["A", "B"]),
        ("Thread 1 holds the cache mutex, wants the table mutex:", "Thread 2 holds the table mutex, wants the cache mutex:", ["1", "2"]),
        ("main thread:", "data loader thread:", ["MainThread", "data loader thread"]),
    ],
)
def test_heads_of_threads_over_blocks_of_code_are_of_one_process(first: str, second: str, names: list[str]) -> None:
    (one,) = read(f"Deadlock in the worker:\n\n{first}{BLOCK.format(name='flush')}{second}{BLOCK.format(name='fetch')}")
    assert [(t.name, len(t.frames)) for t in one.threads] == [(name, 2) for name in names]


def test_what_a_program_says_of_a_rank_is_no_heading():
    text = "Training completed for rank 6. Do not forget to share it\n" + 'Traceback (most recent call first):\n  File "a.py", line 3 in f\n'
    assert [d.rank for d in read(text)] == [None]


def test_an_entry_tells_where_a_stage_is_before_it_tells_for_whom_it_waits():
    (one,) = read("- PP stage 1, all ranks: `recv_forward` → `_communicate` → `torch.cuda.synchronize` — waiting on stage 0.\n")
    assert (one.label, [f[0] for f in one.threads[0].frames]) == ("stage 1", ["torch.cuda.synchronize", "_communicate", "recv_forward"])
