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
