"""The signs of real processes, and what a census makes of signs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ray_rl_debug.watch.beats import Census
from ray_rl_debug.watch.laggard import Laggards
from ray_rl_debug.watch.signals import GpuSign, Known, NodeReading, Sign, SignReader, find_step

PROGRAM = """
import sys, time
print("ready", flush=True)
for line in sys.stdin:
    if line == "spin\\n":
        end = time.process_time() + 0.3
        while time.process_time() < end: pass
    else:
        print(line, end="", file=sys.stderr, flush=True)
    print("done", flush=True)
"""


@contextlib.contextmanager
def process(log: Path) -> Iterator[subprocess.Popen[str]]:
    with log.open("w") as errors:
        child = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    try:
        yield child
    finally:
        assert child.stdin is not None
        child.stdin.close()
        child.stdout.close()
        child.kill()
        child.wait(5)


def ask(child: subprocess.Popen[str], line: str) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(line)
    child.stdin.flush()
    child.stdout.readline()


def known(pid: int, title: str = "ray::Trainer.step", kind: str = "ray-worker", ppid: int = 1, job: str | None = "01000000") -> Known:
    return Known(pid=pid, born=1, kind=kind, ppid=ppid, title=title, job_id=job)


def test_processor_time_and_steps_of_a_real_process(tmp_path: Path) -> None:
    with process(tmp_path / "log") as child:
        reader = SignReader()
        reader.watch([known(child.pid)])
        first = reader.read()
        assert first.known is not None
        assert first.signs[0].cpu is None
        ask(child, "spin\n")
        ask(child, "step: 41 loss 1\n")
        ask(child, "step: 42 loss 1\n")
        assert reader.read().signs[0].step == 42
        assert reader.read().signs[0].step is None
        reader.close()


def test_cpu_share_is_that_of_the_span(tmp_path: Path) -> None:
    with process(tmp_path / "log") as child:
        now = [0.0]
        reader = SignReader(clock=lambda: now[0])
        reader.watch([known(child.pid)])
        reader.read()
        ask(child, "spin\n")
        now[0] = 3.0
        cpu = reader.read().signs[0].cpu
        assert cpu is not None
        assert 0.05 <= cpu <= 0.2
        reader.close()


def test_process_that_ended_leaves_the_set(tmp_path: Path) -> None:
    with process(tmp_path / "log") as child:
        reader = SignReader()
        reader.watch([known(child.pid), known(os.getpid())])
        assert len(reader.read().signs) == 2
        assert reader.read().known is None
    reading = reader.read()
    assert [s.pid for s in reading.signs] == [os.getpid()]
    after = reader.read() if reading.known is None else reading
    assert after.known is not None
    assert [k.pid for k in after.known] == [os.getpid()]
    reader.close()


def test_nothing_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with process(tmp_path / "log") as child:
        reader = SignReader()
        for _ in range(3):
            reader.watch([known(child.pid)])
            reader.read()
        reader.watch([])
        reader.close()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_arguments_of_other_programs_are_not_told(tmp_path: Path) -> None:
    with process(tmp_path / "log") as child:
        reader = SignReader()
        reader.watch([known(child.pid, "python", kind="driver")])
        assert all(s.title is None for s in (*reader.read().signs, *reader.read().signs))
        reader.close()


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (b"step:12 - actor/pg_loss:0.1", 12),
        (b"Epoch 1/2 Step 3/100 Train step 33/1000 done.", 33),
        (b"{'global_step': 99, 'x': 1}", 99),
        (b"Training Progress: iteration=7", 7),
        (b"timestep 4", None),
        (b"stepping 5", None),
        (b"no number", None),
    ],
)
def test_step_numbers(line: bytes, step: int | None) -> None:
    assert find_step(line) == step


def reading(*signs: Sign, known_now: tuple[Known, ...] | None = None, gpus: tuple[GpuSign, ...] | None = None) -> NodeReading:
    return NodeReading(span_s=2.0, signs=signs, known=known_now, gpus=gpus)


def test_calls_that_end_are_progress_and_jobs_are_told_apart() -> None:
    census = Census()
    both = (known(1), known(2, "ray::Other.run", job="02000000"), known(3, "python", kind="child", ppid=1, job=None))
    census.beats({"n": reading(Sign(1, "S"), Sign(2, "S"), Sign(3, "S"), known_now=both)}, 0.0, ["01000000", "02000000"])
    beats = census.beats(
        {"n": reading(Sign(1, "S", 0.5, 9.0, "ray::Trainer"), Sign(2, "S", 0.0), Sign(3, "R", 0.9, 5.0))}, 2.0, ["01000000", "02000000"]
    )
    assert beats["01000000"].moved == (("Trainer", "step"),)
    assert beats["01000000"].working == 2  # the child is its parent's
    assert beats["01000000"].calls == ()
    assert beats["02000000"].moved == ()
    assert beats["02000000"].calls == (("Other", "run"),)


def test_spinning_is_no_work_and_flicker_is_no_rhythm() -> None:
    census = Census()
    census.beats({"n": reading(known_now=(known(1),))}, 0.0, ["01000000"])
    spins = census.beats({"n": reading(Sign(1, "R", 1.0, 0.0))}, 2.0, ["01000000"])["01000000"]
    assert (spins.working, spins.rhythm) == (0, ("Trainer",))
    works = census.beats({"n": reading(Sign(1, "R", 0.5, 20.0))}, 4.0, ["01000000"])["01000000"]
    assert (works.working, works.rhythm) == (1, ())
    less = census.beats({"n": reading(Sign(1, "R", 0.05, 20.0))}, 6.0, ["01000000"])["01000000"]
    assert (less.working, less.rhythm) == (1, ())


def test_process_that_waits_for_a_core_now_and_then_has_no_rhythm() -> None:
    census = Census()
    census.beats({"n": reading(known_now=(known(1),))}, 0.0, ["01000000"])
    rhythm = []
    for number in range(20):
        signs = (Sign(1, "R", 0.4 if number % 2 else 0.0, 20.0),)
        beat = census.beats({"n": NodeReading(span_s=1.0, signs=signs)}, 1.0 + number, ["01000000"])["01000000"]
        rhythm += beat.rhythm
    assert rhythm == ["Trainer"]  # it has begun to work


def test_endless_loop_that_shares_its_core_has_no_rhythm() -> None:
    census = Census()
    census.beats({"n": reading(known_now=(known(1),))}, 0.0, ["01000000"])
    rhythm = []
    for number in range(20):
        signs = (Sign(1, "R", 0.95 if number % 2 else 0.5, 0.0),)
        rhythm += census.beats({"n": reading(*signs)}, 2.0 + 2 * number, ["01000000"])["01000000"].rhythm
    assert rhythm == ["Trainer"]


def test_gpu_that_only_waits_does_not_work() -> None:
    census = Census()

    def beat(at: float, utilization: float, watts: float) -> bool | None:
        signs = reading(known_now=(known(1),), gpus=(GpuSign(0, utilization, watts, 1 << 30),))
        return census.beats({"n": signs}, at, ["01000000"])["01000000"].gpus_work

    assert census.beats({"n": reading(known_now=(known(1),))}, 0.0, ["01000000"])["01000000"].gpus_work is None
    beat(1.0, 1.0, 120.0)
    assert beat(2.0, 1.0, 121.0) is False  # a collective that waits: busy, and the power does not move
    assert beat(3.0, 1.0, 300.0) is True
    assert beat(4.0, 0.6, 300.0) is True
    assert beat(5.0, 0.0, 80.0) is False


def test_restarted_process_with_the_same_pid_is_new() -> None:
    census = Census()
    census.beats({"n": reading(known_now=(known(1),))}, 0.0, ["01000000"])
    again = Known(pid=1, born=2, kind="ray-worker", ppid=1, title="ray::Trainer", job_id="01000000")
    beat = census.beats({"n": reading(known_now=(again,))}, 2.0, ["01000000"])["01000000"]
    assert (beat.appeared, beat.vanished) == (1, 1)


def test_rank_that_is_always_last_is_told_once() -> None:
    census, laggards = Census(), Laggards()
    all_known = tuple(known(pid) for pid in (1, 2, 3, 4))
    census.beats({"n": reading(known_now=all_known)}, 0.0, ["01000000"])
    said = []
    for number in range(100):
        slow = 3 if number % 10 else 2
        signs = (Sign(pid, "S", 0.6 if pid == slow else 0.0, 9.0) for pid in (1, 2, 3, 4))
        said.append(laggards.feed(census.beats({"n": reading(*signs)}, 2.0 * number, ["01000000"])["01000000"]))
    assert [s for s in said if s] == ["Trainer (process 3 on n) is always last: it alone worked in 27 of 30 readings in which its peers rested"]


def test_ranks_that_take_turns_are_no_laggards() -> None:
    census, laggards = Census(), Laggards()
    census.beats({"n": reading(known_now=tuple(known(pid) for pid in (0, 1, 2, 3)))}, 0.0, ["01000000"])
    for number in range(200):
        signs = (Sign(pid, "S", 0.6 if pid == number % 4 else 0.0, 9.0) for pid in (0, 1, 2, 3))
        assert laggards.feed(census.beats({"n": reading(*signs)}, 2.0 * number, ["01000000"])["01000000"]) is None
