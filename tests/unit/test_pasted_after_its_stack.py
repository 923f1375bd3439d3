"""Whose stack it is stands behind it, in the last clause before it, or before the line of a logger."""

from __future__ import annotations

from ray_rl_debug.formats.pasted.read import read
from ray_rl_debug.formats.pasted.strace import StraceReader

_DRIVER = """
```
Process 3011: ray::ActorModel.fit
Thread 3011 (idle): "MainThread"
    get (ray/_private/worker.py:2800)
    fit (ppo_actor.py:120)
```
"""


def test_ranks_in_brackets_behind_a_stack() -> None:
    text = """py-spy over 16 ranks, grouped:

* `backward (torch/autograd/__init__.py:347)` < `training_step (trainer.py:1020)` (15 ranks: 0-6, 8-15)
* `_next_data (torch/utils/data/dataloader.py:1448)` < `__next__` < `fetch (trainer.py:990)` (1 rank: 7)
"""
    found = list(read(text))
    assert sorted(d.rank for d in found if d.rank is not None) == list(range(16))
    assert [len(d.threads[0].frames) for d in found if d.rank == 7] == [3]


def test_the_last_clause_before_a_stack_says_whose_it_is() -> None:
    text = """Only rank 0 uploads; all the other 31 ranks sit in `torch.distributed.barrier()` in `save (ckpt.py:212)`. Rank 0:

```
Thread 901 (idle): "MainThread"
    copy_files (pyarrow/fs.py:272)
    upload (ckpt.py:188)
```
"""
    others, first = read(text)
    assert (others.rank, [s.count for _, s in others.said]) == (None, [31])
    assert (first.rank, first.pid) == (0, 901)


def test_an_error_behind_the_place_of_a_logger_ends_its_traceback() -> None:
    log = "(RayWorkerWrapper pid=4183, ip=10.3.0.2) ERROR 06-03 23:13:39 worker_base.py:148] "
    lines = [
        "Traceback (most recent call last):",
        '  File "/opt/vllm/worker/worker.py", line 286, in start_worker_execution_loop',
        "    while self._execute_model_non_driver():",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
    ]
    first, *_ = read("```\n" + "\n".join(log + line for line in lines) + "\n```\n" + _DRIVER)
    assert [said.kind for _, said in first.said] == ["failed"]


def test_strace_with_a_remark_in_place_of_attached() -> None:
    reader = StraceReader()
    lines = (
        "Strace results:",
        "Process 1960 (shows some activity, leaves epoll_wait() at times):",
        "epoll_wait(9,  ...",
        "Process 2014 attached",
        "read(23, ...",
    )
    found = [row for line in lines if (row := reader.feed(line)) is not None]
    assert [(row.pid, row.call) for row in found] == [(1960, "epoll_wait"), (2014, "read")]


def test_what_no_tool_of_that_name_attached() -> None:
    reader = StraceReader()
    assert [reader.feed(line) for line in ("Process 2014 attached", "read(23, ...", "Process 7 (main):", "read(23, ...")] == [None] * 4


def test_same_behind_another_rank_on_the_line() -> None:
    text = "rank0: `f (a.py:42) <- backward (engine.py:2100)`; rank1: same; rank2: `wait (swap.py:88) <- step (stage3.py:20)`\n"
    assert [(d.rank, len(d.threads[0].frames)) for d in read(text)] == [(0, 2), (1, 2), (2, 2)]


def test_stages_that_one_sentence_tells_of() -> None:
    text = "Stage 0 (rank 0) blocks in `dist.send` in `forward (p2p.py:40)`, stage 1 (rank 1) blocks in `dist.send` in `backward (p2p.py:77)`.\n"
    assert [(d.rank, len(d.threads[0].frames)) for d in read(text)] == [(0, 2), (1, 2)]


def test_portuguese_ranks() -> None:
    text = "O rank 0 está parado em `all_gather_object (dist.py:2530)` e o rank 1 está em `broadcast (dist.py:2100)`.\n"
    assert [(d.rank, d.threads[0].frames[0][0]) for d in read(text)] == [(0, "all_gather_object"), (1, "broadcast")]


def test_the_number_of_an_address_counts_nobody() -> None:
    text = '[10.0.0.4 worker 0 local_rank 1]\n  File "/opt/engine.py", line 200, in save\n'
    assert [list(d.said) for d in read(text)] == [[]]


def test_a_machine_in_backticks_and_its_process() -> None:
    text = "- `node-a` pid 3011: `ncclCommInitRankConfig` (libnccl.so.2)\n- `node-b` pid 3120: `build (main.py:30)`\n"
    assert [d.pid for d in read(text)] == [3011, 3120]


def test_the_parent_below_what_was_said_of_its_child() -> None:
    text = """`DataLoader worker (pid 5120) is killed by signal: Bus error`. Parent:
```
Thread 5001 (idle): "MainThread"
    get (queue.py:180)
    train (main.py:90)
```
"""
    assert [(d.pid, d.label) for d in read(text)] == [(5001, "parent")]


def test_a_thread_of_a_core_dump_has_ended() -> None:
    text = """```
                Stack trace of thread 5120:
                #0  0x00007f2a1c0 __memmove_avx_unaligned_erms (libc.so.6 + 0x18a0)
                #1  0x00007f2a1d0 at::native::copy_impl (libtorch_cpu.so + 0x1200)
```
"""
    (dump,) = read(text)
    assert [said.kind for _, said in dump.said] == ["failed"]


def test_prefixes_of_mpi_and_of_loggers() -> None:
    text = """```
[1,mpirank:0,algo-1]<stdout>:Thread 101 (active): "MainThread"
[1,mpirank:0,algo-1]<stdout>:    all_reduce (torch/parallel.py:210)
2025-10-31 03:11:02,477 - Tuner - INFO - [rank1]: Traceback (most recent call last):
2025-10-31 03:11:02,478 - Tuner - INFO - [rank1]:   File "/w/utils.py", line 192, in reduce_scatter
2025-10-31 03:11:02,479 - Tuner - INFO - [rank1]: KeyError: 'step'
```
"""
    assert [d.rank for d in read(text)] == [0, 1]


def test_threads_of_gdb_with_their_names_beside_their_numbers() -> None:
    text = """```
Thread 12 (LWP 5010 "nccl"):
#0  0x7f in poll () from /lib/libc.so.6
#1  0x7f in ncclProxyService () from /lib/libnccl.so.2
Thread 11 (LWP 5009 "nccl"):
#0  0x7f in sched_yield () from /lib/libc.so.6
```
"""
    (dump,) = read(text)
    assert [(t.tid, len(t.frames)) for t in dump.threads] == [(5010, 2), (5009, 1)]
