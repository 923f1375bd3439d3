"""Bytes, collectives and newcomers of real processes."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ray_rl_debug.collect.procfs import machine_of
from ray_rl_debug.model.snapshot import CollectiveEntry, FlightRecord, RasCommunicator, RasRank
from ray_rl_debug.watch.beats import CARRIES_PER_S, Census
from ray_rl_debug.watch.call_changes import CallChanges
from ray_rl_debug.watch.close_signs import Mover, done_of_ras, done_of_record
from ray_rl_debug.watch.new_processes import NewProcesses
from ray_rl_debug.watch.node_watch import NEW_PROCESSES_SOON_S, RESCAN_S, NodeWatch, WatchOrder
from ray_rl_debug.watch.signals import Known, NodeReading, Sign

PROGRAM = """
import os, socket, subprocess, sys
children = []
for line in sys.stdin:
    what, _, where = line.strip().partition(" ")
    if what == "write":
        with open(where, "wb") as f: f.write(bytes(8 << 20))
    if what == "send":
        with socket.create_connection(("127.0.0.1", int(where))) as c:
            c.sendall(bytes(8 << 20))
            print("done", flush=True)
            sys.stdin.readline()
    if what == "start":
        children.append(subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL))
        print(children[-1].pid, flush=True)
        continue
    if what == "end":
        for c in children: c.kill(); c.wait()
    print("done", flush=True)
"""


@contextlib.contextmanager
def program() -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        ask(child, "nothing")
        yield child
        ask(child, "end")
    finally:
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            pipe.close()
        child.kill()
        child.wait(5)


def ask(child: subprocess.Popen[str], line: str) -> str:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(line + "\n")
    child.stdin.flush()
    return child.stdout.readline().strip()


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_bytes_to_a_file_count_and_a_process_that_rests_moves_none(tmp_path: Path) -> None:
    clock = Clock()
    with program() as child:
        mover = Mover(clock=clock)
        assert mover.read([child.pid]) == {}
        ask(child, f"write {tmp_path / 'checkpoint'}")
        clock.now += 2.0
        assert mover.read([child.pid])[child.pid] == pytest.approx(4 << 20, rel=0.05)
        clock.now += 2.0
        assert mover.read([child.pid])[child.pid] < 1000
        clock.now += 60.0
        assert mover.read([child.pid]) == {}  # the counters before belong to an earlier stall


def test_bytes_over_a_connection_count(tmp_path: Path) -> None:
    clock = Clock()
    with program() as child, socket.create_server(("127.0.0.1", 0)) as server:
        mover = Mover(clock=clock)
        mover.read([child.pid])
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(f"send {server.getsockname()[1]}\n")
        child.stdin.flush()
        connection, _ = server.accept()
        with connection:
            received = 0
            while received < 8 << 20:
                received += len(connection.recv(1 << 20))
            child.stdout.readline()
            clock.now += 2.0
            assert mover.read([child.pid])[child.pid] >= CARRIES_PER_S
            ask(child, "close")


def test_process_that_is_gone_moves_nothing() -> None:
    clock = Clock()
    with program() as child:
        mover = Mover(clock=clock)
        mover.read([child.pid])
    clock.now += 1.0
    assert mover.read([child.pid])[child.pid] == 0


def test_newcomers_of_a_family() -> None:
    with program() as child:
        newcomers = NewProcesses()
        newcomers.note()
        assert newcomers.started_by({child.pid}) == {}
        pid = int(ask(child, "start"))
        assert list(newcomers.started_by({child.pid})) == [pid]
        assert newcomers.started_by({child.pid}) == {}
        ask(child, "start")
        assert newcomers.started_by({os.getpid()}) == {}


def test_process_that_a_driver_starts_is_watched_without_another_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    with program() as child:
        watch = NodeWatch(1 << 22, clock=clock)  # there is no such raylet: the scan finds the driver alone
        scans: list[float] = []
        scan = watch._scan
        monkeypatch.setattr(watch, "_scan", lambda now, order: (scans.append(now), scan(now, order)))
        order = WatchOrder(companion="x", drivers=(child.pid,))
        assert [k.pid for k in watch.read(order).known or ()] == [child.pid]
        started = int(ask(child, "start"))
        clock.now += NEW_PROCESSES_SOON_S
        known = watch.read(order).known
        assert known is not None
        assert {k.pid: k.kind for k in known}[started] == "child"
        for _ in range(20):
            clock.now += 10.0
            watch.read(order)
        assert len(scans) <= 2
        clock.now += RESCAN_S
        watch.read(order)
        assert len(scans) <= 3
        watch.close()


@pytest.mark.parametrize(("is_here", "is_watched"), [(True, False), (False, True)])
def test_the_companions_own_processes_are_left_out_on_its_machine_only(is_here: bool, is_watched: bool) -> None:
    boot_id, namespace = machine_of()
    with program() as child:
        watch = NodeWatch(1 << 22)
        order = WatchOrder(companion="x", drivers=(child.pid,), skip=(child.pid,), skip_on=(boot_id if is_here else "another", namespace))
        assert [k.pid for k in watch.read(order).known or ()] == [child.pid] * is_watched
        watch.close()


def known(pid: int, kind: str = "ray-worker", ppid: int = 1) -> Known:
    return Known(pid=pid, born=1, kind=kind, ppid=ppid, title="ray::Trainer.save_checkpoint" if kind == "ray-worker" else "child", job_id="01000000")


def test_call_of_the_same_name_that_has_begun_anew_is_progress() -> None:
    census = Census()
    census.beats({"n": NodeReading(span_s=1.0, signs=(Sign(1, "S"),), known=(known(1),))}, 0.0, ["01000000"])
    beat = census.beats({"n": NodeReading(span_s=1.0, signs=(Sign(1, "S", 0.0, 0.0, turned=True),))}, 1.0, ["01000000"])["01000000"]
    assert beat.moved == (("Trainer", "save_checkpoint"),)


def test_bytes_and_collectives_of_a_child_are_those_of_its_rank() -> None:
    census = Census()
    both = (known(1), known(2, "child", 1))
    census.beats({"n": NodeReading(span_s=1.0, signs=(Sign(2, "S", collectives=5),), known=both)}, 0.0, ["01000000"])
    moves = Sign(2, "S", 0.01, 0.0, moved_bytes_per_s=2.0 * CARRIES_PER_S, collectives=6)
    beat = census.beats({"n": NodeReading(span_s=1.0, signs=(moves,))}, 1.0, ["01000000"])["01000000"]
    assert (beat.carries, beat.counted) == (("Trainer",), ("Trainer",))
    rests = Sign(2, "S", 0.01, 0.0, moved_bytes_per_s=900.0, collectives=6)
    beat = census.beats({"n": NodeReading(span_s=1.0, signs=(rests,))}, 2.0, ["01000000"])["01000000"]
    assert (beat.carries, beat.counted) == ((), ())


def test_counts_grow_with_each_collective() -> None:
    def record(done: int, waiting: bool) -> FlightRecord:
        entries = [CollectiveEntry(group="0", seq=n, op="gloo:all_reduce", state="completed") for n in range(done)]
        entries += [CollectiveEntry(group="0", seq=done, op="gloo:all_reduce", state="started")] if waiting else []
        return FlightRecord(source="x", entries=tuple(entries))

    assert done_of_record(record(5, False)) < done_of_record(record(5, True)) < done_of_record(record(6, False))
    one = RasCommunicator(hash="a", size=2, ranks=(RasRank(rank=0, pid=7, counts={"AllReduce": 3}), RasRank(rank=1, pid=8, counts={"AllReduce": 2})))
    assert done_of_ras((one, one), {7}) == {7: 10}


def test_cost_of_a_reading_is_bounded() -> None:
    with program() as child:
        newcomers = NewProcesses()
        newcomers.note()
        began = time.thread_time()
        for _ in range(20):
            newcomers.started_by({child.pid})
        assert (time.thread_time() - began) / 20 < 0.01


def test_title_that_was_another_one_between_two_readings_is_seen(tmp_path: Path) -> None:
    generates, scores = b"ray::Trainer.generate_sequences", b"ray::Trainer.compute_reward\0\0\0\0"
    files = {pid: tmp_path / str(pid) / "cmdline" for pid in (7, 8)}
    for file in files.values():
        file.parent.mkdir()
        file.write_bytes(generates)
    turns = CallChanges(tmp_path, every_s=0.01)
    assert turns.watch({7: generates, 8: b"ray::Other.run"}) == set()
    files[8].write_bytes(b"ray::Other.run")
    until = time.monotonic() + 10.0
    while turns._armed and time.monotonic() < until:
        files[7].write_bytes(scores)
        time.sleep(0.02)
        files[7].write_bytes(generates)
        if 7 in turns._turned:
            break
    assert 7 in turns.watch({7: generates})
    time.sleep(0.05)
    assert turns.watch({}) == set()


@pytest.mark.parametrize(
    ("faults", "flips"),
    [([0, 0, 0, 25, 0, 0, 0, 25, 0, 0], 0), ([0, 0, 25, 25, 25, 0, 0, 0], 1)],
    ids=["bursts of Ray's own threads", "spins, works, spins"],
)
def test_one_burst_of_page_faults_is_no_rhythm_of_work(faults: list[int], flips: int) -> None:
    census = Census()
    census.beats({"n": NodeReading(span_s=2.0, signs=(Sign(1, "R", 1.0, 0.0),), known=(known(1),))}, 0.0, ["01000000"])
    beats = []
    for number, rate in enumerate(faults):
        reading = NodeReading(span_s=2.0, signs=(Sign(1, "R", 1.0, float(rate)),))
        beats.append(census.beats({"n": reading}, 2.0 * (number + 1), ["01000000"])["01000000"])
    assert sum(bool(b.rhythm) for b in beats[1:]) == flips
