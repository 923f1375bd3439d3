"""Beside stacks a known error is said of the process that its line names, also where the logs do not tell that the run ended by it."""

from __future__ import annotations

from pathlib import Path

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Cause, Certainty

TEXT = """\
(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker ID: 8e, Node ID: 5f, Worker PID: 31003.
(autoscaler) Restarting 1 nodes of type worker.

and now on the others:

Process 31001: ray::PolicyWorker.train
Thread 31001 (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2806)
    train (policy.py:50)
"""


def test_a_noted_error_is_said_of_the_process_that_its_line_names(tmp_path: Path) -> None:
    post = tmp_path / "post.md"
    post.write_text(TEXT)
    findings = diagnose(load([post]).snapshot).findings
    assert [w.pid for f in findings if f.id == "RRD632" for w in f.who] == [31003]


STALLED = """\
WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks.
Stalled ops:
allreduce.conv1.weight [ready ranks: 0, 1, 3]
"""


def test_what_a_library_says_of_the_ranks_calls_is_a_hypothesis_though_nothing_ended(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(STALLED)
    first = diagnose(load([tmp_path / "job.log"]).snapshot).findings[0]
    assert (first.cause, first.certainty) == (Cause.STRAGGLER, Certainty.POSSIBLE)
    assert [w.rank for w in first.who] == [2]


ELASTIC = """\
[2026-11-21 10:57:17,441] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -6) local_rank: 1 (pid: 46036) of binary: /bin/py
Traceback (most recent call last):
  File "/bin/accelerate", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
"""


def test_the_childs_end_that_the_agent_saw_names_whom_its_error_means(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(ELASTIC)
    first = diagnose(load([tmp_path / "job.log"]).snapshot).findings[0]
    assert [w.pid for w in first.who] == [46036]


def test_who_timed_out_receiving_is_no_likely_culprit(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(
        "[rank2]: Traceback (most recent call last):\n"
        '[rank2]:   File "/app/train.py", line 301, in train\n'
        "[rank2]:     for batch in loader:\n"
        "[rank2]: RuntimeError: Timed out receiving the shared seed from the store on Rank 2. (world_size=4)\n"
    )
    assert {f.certainty for f in diagnose(load([tmp_path / "job.log"]).snapshot).findings} == {Certainty.POSSIBLE}
