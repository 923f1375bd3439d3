"""Stacks collected by hand: the forms people paste, files that are no stacks, several dumps of one process, merging."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.formats.pasted import read as pasted
from ray_rl_debug.formats.pasted.frames import read_frame
from ray_rl_debug.imports.folder import load
from ray_rl_debug.imports.titles import safe_title
from ray_rl_debug.model.codec import encode, encode_compressed
from ray_rl_debug.model.errors import UnreadableFileError
from ray_rl_debug.model.merge import merge_snapshots
from ray_rl_debug.model.snapshot import Gap, Node, Process, RayState, Snapshot

HAND = Path(__file__).parent.parent / "data" / "hand"


def snapshot_of(*paths: Path, limit: int = 1 << 20) -> Snapshot:
    found = load(paths, limit=limit).snapshot
    assert found is not None
    return found


def stack(node: Node, process: Process, sample: int = 0, thread: int = 0) -> list[tuple[str, str, int | None]]:
    frames = [node.frames[i] for i in node.stacks[process.samples[sample].threads[thread].stack]]
    return [(f.function, f.file, f.line) for f in frames]


def test_prefixed_text_with_everything_that_hurts() -> None:
    snapshot = snapshot_of(HAND / "prefixed.txt")
    (node,) = snapshot.nodes
    (process,) = node.processes
    assert (process.pid, process.title, process.python) == (951, "python train.py --api-key --token --role actor --worker-index 3", "3.12")
    assert stack(node, process) == [
        ("all_reduce", "torch/distributed/distributed_c10d.py", 3252),
        ("c10d::ProcessGroupGloo::RecvWork::wait(std::chrono::duration<long, std::ratio<1l, 1000l> >)", "libtorch_cpu.so", None),
        ("0x7f12ab34cd56", "", None),
        ("step", "trainer.py", None),
        ("fit", "", None),
        ("main", "", None),
        ("naïve_größe", "café.py", 7),
    ]
    main, shared, pool = process.samples[0].threads
    assert (main.tid, main.active, main.owns_gil) == (951, True, True)
    assert (shared.tid, shared.active, shared.name) == (None, False, None)
    assert (pool.tid, pool.active, pool.name) == (960, None, "pool-1")
    assert shared.stack == pool.stack
    assert stack(node, process, thread=2) == [("wait", "threading.py", 327), ("run", "threading.py", 900)]
    assert b"s3cr3t" not in encode(snapshot)
    assert b"hunter2" not in encode(snapshot)


def test_pid_in_the_prefix_of_headers() -> None:
    (node,) = snapshot_of(HAND / "decode.txt").nodes
    assert [(p.pid, stack(node, p)[0][0]) for p in node.processes] == [(951, "broadcast"), (952, "recv_multipart")]


def test_several_ranks_on_one_line() -> None:
    nodes = snapshot_of(HAND / "ranks.txt").nodes
    found = {n.processes[0].title: stack(n, n.processes[0])[0][0] for n in nodes}
    assert found == {"DP0": "broadcast", "DP3": "broadcast", "DP5": "broadcast", "DP6": "broadcast", "DP1": "all_gather"}


def test_faulthandler_knows_no_pid_but_the_file_name_says_rank() -> None:
    (node,) = snapshot_of(HAND / "rank_3.log").nodes
    (process,) = node.processes
    assert process.env == {"RANK": "3"}
    assert process.pid == 0
    assert any(g.what == "its process id" for g in node.gaps)
    assert stack(node, process, thread=1) == [
        ("all_reduce", "torch/distributed/distributed_c10d.py", 3252),
        ("step", "/home/u/train.py", 12),
        ("<module>", "/home/u/train.py", 30),
    ]
    assert [t.name for t in process.samples[0].threads] == [None, "MainThread"]


def test_pystack_text_is_turned_innermost_first() -> None:
    (node,) = snapshot_of(HAND / "pystack.txt").nodes
    (process,) = node.processes
    assert process.pid == 700
    assert stack(node, process, thread=1) == [("compute_score", "/home/u/train.py", 12), ("<module>", "/home/u/train.py", 30)]


def test_every_file_of_a_folder_and_one_sentence_per_bad_file(tmp_path: Path) -> None:
    for name in ("prefixed.txt", "rank_3.log", "pystack.txt"):
        (tmp_path / name).write_bytes((HAND / name).read_bytes())
    (tmp_path / "core").write_bytes(b"\x7fELF\x00\x00\x00")
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "cut.json").write_bytes(b'[{"pid": 1, "frames": [{"na')
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(b"x" * 10_000)[:-12])
    (tmp_path / "notes.md").write_text("nothing to see")
    snapshot = snapshot_of(tmp_path)
    assert len([p for n in snapshot.nodes for p in n.processes]) == 3
    reasons = {g.where: g.reason for g in snapshot.gaps if g.id == "RRD912"}
    assert set(reasons) == {"core", "empty.txt", "cut.json", "cut.json.gz", "notes.md"}
    assert reasons["core"] == "binary data, no stacks"
    assert any(g.id == "RRD917" for g in snapshot.gaps)


def test_nothing_usable_is_an_error_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(b"\x00\x01")
    with pytest.raises(UnreadableFileError, match="core: binary data, no stacks"):
        load([tmp_path])


def test_large_files_are_read_from_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "big.txt"
    path.write_text('Process 1: p\nThread 1 (idle): "MainThread"\n    f (a.py:1)\n' + "noise\n" * 5000)
    snapshot = snapshot_of(path, limit=4096)
    assert [g.id for g in snapshot.gaps] == ["RRD917", "RRD910"]


def dump_text(line: int, title: str = "ray::A.m") -> str:
    return f'Process 77: {title}\nPython v3.11.7 (/usr/bin/python)\n\nThread 77 (idle): "MainThread"\n    f (a.py:{line})\n'


def test_dumps_of_one_process_are_samples_in_time_order(tmp_path: Path) -> None:
    for number, time_s in ((2, 1000.0), (10, 1004.0)):
        path = tmp_path / f"dump_{number}.txt"
        path.write_text(dump_text(number, f"ray::A.m{number}"))
        os.utime(path, (time_s, time_s))
    (node,) = snapshot_of(tmp_path).nodes
    (process,) = node.processes
    assert [s.at_s for s in process.samples] == [0.0, 4.0]
    assert [stack(node, process, i)[0][2] for i in (0, 1)] == [2, 10]
    assert node.window_s == 4.0
    assert node.gaps == ()


def test_repeated_faulthandler_dumps_in_one_log_are_samples(tmp_path: Path) -> None:
    head = "Current thread 0x00007f5d0a1b2740 (most recent call first):\n"
    (tmp_path / "local_rank_1.log").write_text("".join(f'{head}  File "a.py", line {n} in f\n' for n in (1, 2)))
    (node,) = snapshot_of(tmp_path).nodes
    (process,) = node.processes
    assert [stack(node, process, i)[0][2] for i in (0, 1)] == [1, 2]
    assert process.env == {}


def test_equal_pids_of_different_containers_stay_apart(tmp_path: Path) -> None:
    for number in (0, 1):
        (tmp_path / f"rank{number}.txt").write_text(dump_text(number))
    nodes = snapshot_of(tmp_path).nodes
    assert sorted(p.env["RANK"] for n in nodes for p in n.processes) == ["0", "1"]
    assert len({n.name for n in nodes}) == 2


def test_text_and_json_of_one_moment_are_one_sample(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text(dump_text(5))
    frame = {"name": "f", "filename": "/x/site-packages/a.py", "line": 5, "locals": [{"name": "password", "addr": 1, "repr": "s3cr3t"}]}
    thread = {"pid": 77, "thread_name": "MainThread", "os_thread_id": 77, "active": False, "owns_gil": False, "frames": [frame]}
    (tmp_path / "p.json").write_text(json.dumps([thread]))
    snapshot = snapshot_of(tmp_path)
    (process,) = snapshot.nodes[0].processes
    assert (len(process.samples), process.title, process.python, process.kind) == (1, "ray::A.m", "3.11", "ray-worker")
    assert b"s3cr3t" not in encode(snapshot)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("    f (a.py:1)", [("f", "a.py", 1)]),
        ("operator() (x.so)", [("operator()", "x.so", 0)]),
        ("(anonymous namespace)::run (libtorch.so.2.1)", [("(anonymous namespace)::run", "libtorch.so.2.1", 0)]),
        ("<module> (<string>:1)", [("<module>", "<string>", 1)]),
        ("see the docs (they are good)", []),
        ("", []),
        ("f (a.py:1) (called from b.py:2)", [("f", "a.py", 1)]),
    ],
)
def test_frames(line: str, expected: list[tuple[str, str, int]]) -> None:
    found = read_frame(line)
    assert (list(found.places) if found else []) == expected


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("ray::WorkerDict.update", "ray::WorkerDict.update"),
        ("/usr/bin/python -m verl.trainer.main_ppo data.key=s3cr3t", "python -m verl.trainer.main_ppo"),
        ("python -c import os; password='x'", "python"),
        ("python /a/train.py --rank=3 --wandb-key=abc", "python train.py --rank=3 --wandb-key"),
    ],
)
def test_titles_hold_no_values(command: str, shown: str) -> None:
    assert safe_title(command) == shown


@settings(deadline=None)  # how long a text takes is measured in tests/faults
@given(st.text(max_size=400))
def test_any_text_is_survived(text: str) -> None:
    pasted.read(text)
    pasted.read('Process 1: x\nThread 1 (idle): "M"\n' + text)


def test_merge_takes_nodes_gaps_and_newest_tables() -> None:
    gap = Gap(id="RRD902", where="a", what="w", reason="r")
    bare = Gap(id="RRD917", where="a", what="w", reason="r")
    node_a = Node(name="a", boot_id="1", pid_namespace="p", started_time_s=1.0, window_s=1.0)
    node_b = Node(name="b", boot_id="2", pid_namespace="p", started_time_s=1.0, window_s=1.0)
    node_a_later = Node(name="a", boot_id="1", pid_namespace="p", started_time_s=9.0, window_s=1.0)
    merged = merge_snapshots(
        [
            Snapshot(taken_time_s=9.0, nodes=(node_a_later,), gaps=(gap, bare)),
            Snapshot(taken_time_s=1.0, nodes=(node_a, node_b), gaps=(gap,), ray=RayState(address="x:1")),
        ]
    )
    assert merged.nodes == (node_a_later, node_b)
    assert merged.ray == RayState(address="x:1")
    assert merged.taken_time_s == 9.0
    assert [g.id for g in merged.gaps] == ["RRD902", "RRD910"]


def test_snapshots_of_several_files_merge(tmp_path: Path) -> None:
    for name in ("a", "b"):
        node = Node(name=name, boot_id=name, started_time_s=1.0, window_s=1.0)
        (tmp_path / name).mkdir()
        (tmp_path / name / "snapshot.json.gz").write_bytes(encode_compressed(Snapshot(taken_time_s=1.0, nodes=(node,))))
        (tmp_path / name / "report.json").write_text("{}")
    assert [n.name for n in snapshot_of(tmp_path / "a", tmp_path / "b").nodes] == ["a", "b"]


@pytest.mark.parametrize(
    "line",
    [
        "INFO 11-20 10:23:07 [loggers.py:116] Engine 000: Avg prompt throughput: 0.0 tokens/s",
        "2026-11-20 03:14:02 INFO httpx: HTTP Request: POST http://10.0.0.3:30000/generate 200 OK",
        "(TaskRunner pid=10211) loading the data set",
        "[rank3]: building the model",
    ],
)
def test_a_log_that_tells_of_nothing_is_a_log(tmp_path: Path, line: str) -> None:
    """The log of a job that stands says nothing more: that is no error of whoever gives it."""
    (tmp_path / "job.out").write_text(f"{line}\n" * 40)
    found = load([tmp_path / "job.out"]).snapshot
    assert found is not None and [(b.lines, b.events) for b in found.logs] == [(40, ())]
    assert "take stacks of the processes" in diagnose(found).verdict.summary


def test_beside_stacks_a_log_that_tells_of_nothing_adds_nothing(tmp_path: Path) -> None:
    (tmp_path / "job.out").write_text('2026-11-20 03:14:02 INFO begun\nThread 7 (idle): "MainThread"\n    f (train.py:3)\n')
    found = load([tmp_path / "job.out"]).snapshot
    assert found is not None and found.logs == () and [p.samples for n in found.nodes for p in n.processes] != []
