"""A process that somebody dumps is not stopped; one that a debugger holds is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ray_rl_debug.collect.stops import AGAIN_S, LASTS_S, SIGNAL, TOTAL_S, Stops

PID = 7


class Kernel:
    """Who holds the process at which second, read through files as the kernel's."""

    def __init__(self, proc: Path, holders: Sequence[tuple[float, float, int]]) -> None:
        self.proc, self.holders, self.now = proc, holders, 0.0
        (proc / str(PID)).mkdir()
        self.write()

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.write()

    def write(self) -> None:
        tracer = next((t for since, until, t in self.holders if since <= self.now < until), None)
        state = "S" if tracer is None else "t" if tracer else "T"
        (self.proc / str(PID) / "stat").write_text(f"{PID} (a) {state} 1" + " 0" * 50)
        (self.proc / str(PID) / "status").write_text(f"State:\t{state}\nTracerPid:\t{tracer or 0}\n")


def read(tmp_path: Path, *holders: tuple[float, float, int], first: int | None = None) -> tuple[str, float]:
    kernel = Kernel(tmp_path, holders)
    stat = Stops(tmp_path, clock=lambda: kernel.now, sleep=kernel.sleep).read(PID, first)
    assert stat is not None
    return stat.state, kernel.now


@pytest.mark.parametrize("first", [None, 41])
def test_a_dump_that_ends_is_no_stop(tmp_path: Path, first: int | None) -> None:
    state, took_s = read(tmp_path, (0.0, 0.3, 40), first=first)
    assert (state, round(took_s, 1)) == ("S", 0.3)


def test_a_debugger_that_stays_is_one(tmp_path: Path) -> None:
    state, took_s = read(tmp_path, (0.0, 1e9, 40))
    assert state == "t"
    assert LASTS_S <= took_s <= LASTS_S + 2 * AGAIN_S


def test_a_debugger_that_held_it_at_the_first_look_is_believed_soon(tmp_path: Path) -> None:
    state, took_s = read(tmp_path, (0.0, 1e9, 40), first=40)
    assert (state, took_s < LASTS_S / 2) == ("t", True)


def test_a_pause_by_a_signal_that_ends_is_no_stop(tmp_path: Path) -> None:
    state, took_s = read(tmp_path, (0.0, 0.4, SIGNAL))
    assert (state, round(took_s, 1)) == ("S", 0.4)


def test_a_signal_that_lasts_stops_it(tmp_path: Path) -> None:
    state, took_s = read(tmp_path, (0.0, 1e9, SIGNAL))
    assert state == "T"
    assert LASTS_S <= took_s <= LASTS_S + 2 * AGAIN_S


def test_of_many_that_a_signal_has_stopped_all_the_time_none_takes_time(tmp_path: Path) -> None:
    assert read(tmp_path, (0.0, 1e9, SIGNAL), first=SIGNAL) == ("T", 0.0)


def test_a_profiler_that_lets_it_go_again_and_again_does_not_stop_it(tmp_path: Path) -> None:
    assert read(tmp_path, *((0.05 * n, 0.05 * n + 0.03, 40) for n in range(100)), first=40)[0] == "S"


def test_dumps_one_after_another_are_not_believed(tmp_path: Path) -> None:
    state, took_s = read(tmp_path, *((0.4 * n, 0.4 * n + 0.4, 40 + n) for n in range(100)))
    assert state == "?"
    assert took_s <= TOTAL_S + 2 * AGAIN_S


def test_a_process_that_has_ended_is_none(tmp_path: Path) -> None:
    assert Stops(tmp_path).read(PID, None) is None
