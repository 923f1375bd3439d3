"""Heads that name several processes at once, or a process by its part in the program, and sentences that name whom a tool has looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.formats.pasted import labels
from ray_rl_debug.formats.pasted.read import read
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model.report import Cause

STACK = "  f (a.py:3)\n  main (a.py:9)\n"


@pytest.mark.parametrize(
    ("head", "pids"),
    [
        ("x4 (pids 11 12 13 14):", [11, 12, 13, 14]),
        ("pids 8102, 8103 and 8104:", [8102, 8103, 8104]),
        ("processes 8102 and 8103:", [8102, 8103]),
        ("pid 4001 (rank 0), 4002, 4003:", [4001, 4002, 4003]),
        ("pid 12 (rank 0), 13 and 14:", [12, 13, 14]),
    ],
)
def test_several_process_ids_over_one_stack(head: str, pids: list[int]) -> None:
    assert [d.pid for d in read(f"{head}\n```\n{STACK}```\n")] == pids


def test_small_numbers_of_processes_are_ranks() -> None:
    assert [d.rank for d in read(f"processes 0, 1:\n```\n{STACK}```\n")] == [0, 1]


def test_a_list_of_hosts_is_one_look_at_several() -> None:
    dumps = read(f"- hosts: [gpu-01, gpu-02]\n  stack:\n{STACK}- hosts: [gpu-04]\n  stack:\n{STACK}")
    assert [(d.node, [s.count for _, s in d.said]) for d in dumps] == [("gpu-01,gpu-02", [2]), ("gpu-04", [])]


@pytest.mark.parametrize("text", ["Worker process thread stack (stuck)", "The worker process's stack:", "**Worker process stack trace**"])
def test_a_process_is_named_by_its_part(text: str) -> None:
    found = labels.read(text)
    assert found is not None
    assert found.label == "worker process"


@pytest.mark.parametrize(
    "text", ["The stuck process stack is below", "Each process stack trace was the same", "worker process stack grew. It is odd"]
)
def test_a_process_without_a_part_is_not_named(text: str) -> None:
    found = labels.read(text)
    assert found is None or found.label is None


def test_a_table_with_tabs_ends_with_the_caller() -> None:
    rows = "0\t811\tidle\tall_reduce (c10d.py:2810)\tclip (clip.py:60)\n1\t813\tactive\titem (metrics.py:31)\tlog (loop.py:90)\n"
    dumps = read(f"rank\tpid\tstate\ttop\tcaller\n{rows}")
    assert [(d.rank, d.pid, [f[0] for f in d.threads[0].frames]) for d in dumps] == [(0, 811, ["all_reduce", "clip"]), (1, 813, ["item", "log"])]


def test_a_sentence_says_whom_a_tool_has_looked_at() -> None:
    dumps = read("py-spy on 8102 and 8103 shows `all_gather (c10d.py:3100) < gather (eval.py:44)`.\n")
    assert [(d.pid, d.threads[0].frames) for d in dumps] == [
        (pid, [("all_gather", "c10d.py", 3100), ("gather", "eval.py", 44)]) for pid in (8102, 8103)
    ]


def test_a_listing_stays_beside_what_sentences_tell() -> None:
    listing = "  PID STAT WCHAN               CMD\n 8101 Dl   nfs_wait_bit_killable python train.py\n"
    dumps = read(f"```\n{listing}```\npy-spy on 8102 shows `all_gather (c10d.py:3100) < gather (eval.py:44)`.\n")
    assert sorted(d.pid or 0 for d in dumps) == [8101, 8102]


def test_sentences_in_russian() -> None:
    dumps = read("Обучение зависает. ранг 0 висит в `barrier (c10d.py:4100)`, а ранг 1 ждёт в `load (model.py:88)`.\n")
    assert [(d.rank, d.threads[0].frames[0][0]) for d in dumps] == [(0, "barrier"), (1, "load")]


@pytest.mark.parametrize(
    ("text", "title"), [("pid=81 (LLMRayActor) 的栈：", "ray::LLMRayActor"), ("PID 81 (idle):", None), ("PID 81 (Worker):", None)]
)
def test_the_class_beside_a_process_id(text: str, title: str | None) -> None:
    found = labels.read(text)
    assert found is not None
    assert (found.pid, found.title) == (81, title)


def test_an_idle_actor_of_another_class_is_not_said_to_be_absent_from_a_group(tmp_path: Path) -> None:
    idle = "    main_loop (ray/_private/worker.py:935)\n    <module> (ray/_private/workers/default_worker.py:297)\n"
    meets = (
        "    _create_c10d_store (torch/distributed/rendezvous.py:189)\n"
        "    init_process_group (torch/distributed/distributed_c10d.py:1361)\n    setup (d.py:8)\n"
    )
    file = tmp_path / "post.md"
    file.write_text(f"pid=81 (LLMRayActor):\n```\n{idle}```\npid=82 (TrainRayActor):\n```\n{meets}```\n")
    snapshot = load([file]).snapshot
    assert snapshot is not None
    first = diagnose(snapshot).findings[0]
    assert first.cause is Cause.INIT_DEADLOCK
    assert [w.pid for w in first.who] == [None]


@pytest.mark.parametrize(
    ("text", "label"),
    [("^CProcess wandb_internal:", "wandb_internal"), ("Process ForkPoolWorker-3:", "ForkPoolWorker-3"), ("Process overview:", None)],
)
def test_a_child_that_was_interrupted(text: str, label: str | None) -> None:
    found = labels.read(text)
    assert (found.label if found is not None else None) == label


def test_a_process_that_a_tool_could_not_read_is_not_said_to_be_idle(tmp_path: Path) -> None:
    file = tmp_path / "post.md"
    file.write_text("=== stdout ===\nProcess 830: ray::JobSupervisor\nPython v3.7.7\n\n=== stderr ===\nError: failed to get os threadid\n")
    snapshot = load([file]).snapshot
    assert snapshot is not None
    report = diagnose(snapshot)
    assert "idle" not in report.verdict.summary
    assert "830" in report.next_dumps[0].command


@pytest.mark.parametrize(
    "heads",
    [
        ("on gpu-a1:", "on gpu-b2:"),
        ("From gpu-a1", "From gpu-b2"),
        ("**head node**", "**worker node**"),
        ("machine A:", "machine B:"),
        ("Server 1", "Server 2"),
        ("first node:", "second node:"),
    ],
)
def test_one_process_id_on_two_machines_is_two_processes(heads: tuple[str, str]) -> None:
    dumps = read("".join(f'{head}\n```\nThread 77 (idle): "MainThread"\n{STACK}```\n' for head in heads))
    assert len({d.node for d in dumps} - {None}) == 2


@pytest.mark.parametrize("text", ["step-3:", "on the worker node", "It hangs on gpu-a1 and not elsewhere", "node 3:"])
def test_words_that_name_no_other_machine(text: str) -> None:
    found = labels.read(text)
    assert (found.node if found is not None else None) in (None, "node3")


@pytest.mark.parametrize(
    ("head", "ranks"),
    [
        ("rank 0 (pid 4001), 1 (4002), 2 (4003):", (0, 1, 2)),
        ("ranks 0 (pid 4001), 1 (pid 4002):", (0, 1)),
        ("4001 (rank 0), 4002 (rank 1) and 4003 (rank 2):", (0, 1, 2)),
        ("pid 4001 (rank 0), 2, 3:", (0,)),
    ],
)
def test_lists_with_two_numbers_for_each(head: str, ranks: tuple[int, ...]):
    found = labels.read(head)
    assert found is not None
    assert found.ranks == ranks


def test_a_rank_that_equals_a_number_in_words_and_not_in_a_program():
    found = labels.read("On the master process (rank == 0)")
    assert found is not None
    assert found.ranks == (0,)
    assert labels.read("if (rank == 0):") is None
    assert labels.read("if rank == 0:") is None
