"""The Flight Recorder of real gloo ranks: files in both forms and torch's worker server give the same, right answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ray_rl_debug.analyze.flight import is_moving, match
from ray_rl_debug.collect.flight_recorder import read_flight_files, read_worker_server
from ray_rl_debug.collect.node import collect_node
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.imports.folder import load
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Node, Snapshot

pytestmark = pytest.mark.integration
PROGRAM = Path(__file__).parent / "flight_program.py"
DEADLINE_S = 90.0


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[subprocess.Popen[str]]]]:
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("fr")
    env = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "WORLD_SIZE": "3", "TORCH_FR_DUMP_TEMP_FILE": f"{folder}/own_"}
    started = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder)], env={**env, "RANK": str(r)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for r in range(3)
    ]
    try:
        for rank in range(3):
            _await(folder / f"ready{rank}", started)
        yield folder, started
    finally:
        for one in started:
            one.kill()
            one.wait()
            for pipe in (one.stdin, one.stdout):
                if pipe is not None:
                    pipe.close()


def _await(path: Path, processes: list[subprocess.Popen[str]]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not path.exists():
        assert all(p.poll() is None for p in processes), "a rank ended early"
        assert time.monotonic() < deadline, f"{path.name} never came"
        time.sleep(0.05)


def _dump(processes: list[subprocess.Popen[str]], name: str) -> None:
    for one in processes:
        assert one.stdin is not None
        assert one.stdout is not None
        one.stdin.write(name + "\n")
        one.stdin.flush()
        assert one.stdout.readline().strip() == name


@pytest.mark.parametrize("form", ["json", "pickle"])
def test_files_of_real_ranks(ranks: tuple[Path, list[subprocess.Popen[str]]], form: str) -> None:
    folder, processes = ranks
    deadline = time.monotonic() + DEADLINE_S
    number = 0
    while True:  # the two ranks may not have come to their last collective yet
        number += 1
        _dump(processes, f"{form}{number}")
        records, missing = read_flight_files(sorted(folder.glob(f"{form}{number}_rank_*.{form}")))
        result = match(records)
        if result.culprits or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    assert missing == ()
    assert (result.roots[0].kind, result.roots[0].op, result.roots[0].seq, result.culprits) == ("missing", "gloo:all_reduce", 4, (2,))


def test_worker_server_of_real_ranks(ranks: tuple[Path, list[subprocess.Popen[str]]]) -> None:
    folder, processes = ranks
    ports = [int((folder / f"ready{r}").read_text()) for r in range(3)]
    if not all(ports):
        pytest.skip("this torch has no worker server")
    deadline = time.monotonic() + DEADLINE_S
    while True:
        polls = [[read_worker_server("127.0.0.1", ports[r], rank=r, pid=processes[r].pid) for r in range(3)] for _ in range(2)]
        assert [gap for poll in polls for _, gap in poll] == [None] * 6
        first, second = ([record for record, _ in poll if record is not None] for poll in polls)
        result = match(second, first)
        if (result.culprits and not is_moving(first, second)) or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    assert (result.moving, result.culprits) == (False, (2,))


def _collected(processes: list[subprocess.Popen[str]]) -> Node:
    pids = tuple(p.pid for p in processes)
    return collect_node(CollectOptions(pids=pids, samples=2, interval_s=1.2, async_tasks=False, logs=False))


def _accused(node: Node) -> list[tuple[str, int | None, int | None]]:
    found = diagnose(Snapshot(tool_version="0", taken_time_s=node.started_time_s, nodes=(node,)))
    return [(f.cause.value, w.rank, w.pid) for f in found.findings for w in f.who]


def test_the_node_collector_asks_the_worker_servers_that_the_job_started(ranks: tuple[Path, list[subprocess.Popen[str]]]) -> None:
    folder, processes = ranks
    if not int((folder / "ready0").read_text()):
        pytest.skip("this torch has no worker server")
    deadline = time.monotonic() + DEADLINE_S
    while True:  # the two ranks may not have come to their last collective yet
        node = _collected(processes)
        if (_accused(node) and len(node.flight_records) == 2 * len(processes)) or time.monotonic() > deadline:
            break
    assert [r.pid for r in node.flight_records] == [p.pid for p in processes] * 2
    assert (node.flight_records[-1].taken_time_s or 0) - (node.flight_records[0].taken_time_s or 0) >= 1.0
    assert [(rank, pid) for _, rank, pid in _accused(node)] == [(2, processes[2].pid)]
    found = diagnose(Snapshot(tool_version="0", taken_time_s=node.started_time_s, nodes=(node,)))
    assert any("rank/2 has not enqueued all_reduce number 4" in link.evidence for link in found.links), found.links


def test_the_node_collector_reads_files_that_the_ranks_wrote(ranks: tuple[Path, list[subprocess.Popen[str]]]) -> None:
    folder, processes = ranks
    _dump(processes, "own file")
    records = [r for r in _collected(processes).flight_records if not r.source.startswith("http")]
    assert [(r.source, r.rank, r.pid) for r in records] == [(f"own_{i}", i, p.pid) for i, p in enumerate(processes)]
    older = time.time() - 86400
    for i in range(3):
        os.utime(folder / f"own_{i}", (older, older))
    assert all(r.source.startswith("http") for r in _collected(processes).flight_records)


def test_a_stopped_rank_is_not_asked(ranks: tuple[Path, list[subprocess.Popen[str]]]) -> None:
    _, processes = ranks
    processes[1].send_signal(signal.SIGSTOP)
    try:
        node = _collected(processes)
    finally:
        processes[1].send_signal(signal.SIGCONT)
    assert processes[1].pid not in {r.pid for r in node.flight_records if r.source.startswith("http")}
    assert (node.took_s or 99) < 6
    assert [cause for cause, _, pid in _accused(node) if pid == processes[1].pid] == ["process-stopped"]


def _sections(folder: Path, processes: list[subprocess.Popen[str]], handler: str) -> str:
    """A file as torch's debug server writes it: the ranks' own answers one below the other."""
    parts = []
    for rank in range(3):
        with urllib.request.urlopen(f"http://127.0.0.1:{(folder / f'ready{rank}').read_text()}/handler/{handler}", b"", timeout=20) as answer:
            parts += [f"=== Rank {rank}: 127.0.0.1:1 ===", answer.read().decode()]
    return "\n".join(parts)


def test_a_dump_folder_of_torchs_debug_server(ranks: tuple[Path, list[subprocess.Popen[str]]], tmp_path: Path) -> None:
    folder, processes = ranks
    if not int((folder / "ready0").read_text()):
        pytest.skip("this torch has no worker server")
    (tmp_path / "stacks_20260921_101500.txt").write_text(_sections(folder, processes, "dump_traceback"))
    (tmp_path / "stacks_20260921_101600.txt").write_text(_sections(folder, processes, "dump_traceback"))
    (tmp_path / "fr_trace_20260921_101500.txt").write_text("=== FR Trace ===\n--- Groups ---\n  id\n")
    loaded = load([tmp_path]).snapshot
    assert loaded is not None
    found = diagnose(loaded)
    assert [(w.rank, w.label.rsplit("/")[-1]) for f in found.findings for w in f.who] == [(2, "2")]
    assert [g.where for g in loaded.gaps if g.id == gaps.FILE_UNREAD] == ["fr_trace_20260921_101500.txt"]


def test_a_port_where_nobody_listens_is_a_gap() -> None:
    import socket

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        record, gap = read_worker_server("127.0.0.1", held.getsockname()[1], timeout_s=1.0)
    assert record is None
    assert gap is not None
    assert "refused" in gap.reason
