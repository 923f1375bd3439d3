"""Whose stack it is where a machine, a count or a list of ranks stands before it; Open MPI's own frames; a rank behind its place."""

from __future__ import annotations

from pathlib import Path

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.formats.pasted import said
from ray_rl_debug.formats.pasted.read import read
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Report


def report(folder: Path, text: str) -> Report:
    (folder / "post.md").write_text(text)
    snapshot = load([folder / "post.md"]).snapshot
    assert snapshot is not None
    return diagnose(snapshot)


def dump(host: str, frames: str) -> str:
    return f'$ ssh {host} py-spy dump --pid 1\nThread 1 (idle): "MainThread"\n{frames}'


def test_one_number_on_three_machines_is_three_processes_and_no_later_look(tmp_path: Path) -> None:
    waits = "    block_until_ready (jax/_src/array.py:642)\n    main (train.py:585)\n"
    text = dump("rack3-07", waits) + dump("rack4-07", waits) + dump("root@rack5-07", "    step (train.py:301)\n    main (train.py:580)\n")
    assert [d.node for d in read(text)] == ["rack3-07", "rack4-07", "rack5-07"]
    found = report(tmp_path, text)
    assert [w.node for f in found.findings if f.root for w in f.who] == ["rack5-07"]
    assert "later look" not in found.verdict.summary


def test_a_number_before_the_word_pid_counts_nothing() -> None:
    assert said.count_in("2 pid 9102:") is None
    assert said.count_in("2 pids are here:") == 2


def test_ranks_in_round_brackets_are_ranks_and_what_is_counted_there_is_none() -> None:
    frames = "```\n  isend (a.py:1)\n  run (b.py:2)\n```\n"
    assert [d.rank for d in read(f"The even ranks (0, 2, 4) are all here:\n{frames}")] == [0, 2, 4]
    assert [d.rank for d in read(f"My ranks (4 GPUs each) are here:\n{frames}")] == [None]


def test_a_count_may_stand_before_a_sign_and_a_stack() -> None:
    dumps = read("254 x `all_gather` (d.py:3) < `_unshard` (f.py:2)\n  2 x `get_chunk` (s.py:9) < `__next__` (s.py:4)\n")
    assert [[s.count for _, s in d.said] for d in dumps] == [[254], [2]]


def test_open_mpi_names_machine_and_process_before_each_frame() -> None:
    text = "[node14:1381] [ 0] /lib/libpthread.so.0(+0x11390)[0x7f9b5fedd390]\n"
    text += "[node14:1381] [ 1] /opt/libmpi.so.40(MPI_Comm_create+0x1b3)[0x7f9b609d2b23]\n"
    assert [(d.node, d.pid, [f[0] for f in d.threads[0].frames]) for d in read(text)] == [("node14", 1381, ["??", "MPI_Comm_create"])]


def test_a_rank_may_stand_behind_its_place() -> None:
    text = "After that it hangs in `accelerator.get_state_dict()` on rank 0.\n"
    assert [(d.rank, [f[0] for f in d.threads[0].frames]) for d in read(text)] == [(0, ["accelerator.get_state_dict"])]
    assert read("If it hangs in `accelerator.get_state_dict()` on rank 0, start anew.\n") == []


def test_a_library_that_has_the_interpreter_is_not_at_rest(tmp_path: Path) -> None:
    text = (
        "Process 37: ray::HTTPProxyActor\nPython v3.7.7 (/usr/bin/python3.7)\n\n"
        'Thread 37 (active): "MainThread"\n    main_loop (ray/worker.py:409)\n'
        'Thread 39 (active+gil): "AsyncIO Thread"\n    add (_weakrefset.py:84)\n    create_task (asyncio/base_events.py:404)\n'
        "    _run_once (asyncio/base_events.py:1786)\n"
    )
    assert "idle" not in report(tmp_path, text).verdict.summary


def test_evidence_names_processes_as_the_report_does(tmp_path: Path) -> None:
    stack = "```\n  isend (torch/distributed/distributed_c10d.py:2064)\n  {f} (pp.py:{n})\n```\n"
    text = f"rank 0:\n{stack.format(f='send_forward', n=5)}rank 1:\n{stack.format(f='send_backward', n=6)}"
    where = [e.where for f in report(tmp_path, text).findings for e in f.evidence]
    assert where
    assert not [w for w in where if w.startswith("imported")]
