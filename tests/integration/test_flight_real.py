"""The Flight Recorder of real gloo ranks: files in both forms and torch's worker server give the same, right answer."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ray_rl_debug.analyze.flight import is_moving, match
from ray_rl_debug.collect.flight_recorder import read_flight_files, read_worker_server

pytestmark = pytest.mark.integration
PROGRAM = Path(__file__).parent / "flight_program.py"
DEADLINE_S = 90.0


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[subprocess.Popen[str]]]]:
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("fr")
    env = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
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


def test_a_port_where_nobody_listens_is_a_gap() -> None:
    import socket

    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        record, gap = read_worker_server("127.0.0.1", held.getsockname()[1], timeout_s=1.0)
    assert record is None
    assert gap is not None
    assert "refused" in gap.reason
