"""Frames of C behind the window: of whom they are read, and what they say. The card's driver is a library of our own, its wait a real one in C."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.collect.in_c import run_at_one_place, uses_accelerator
from ray_rl_debug.collect.node import collect_node
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.model.snapshot import Node, Sample, Snapshot, ThreadSample

SOURCE = Path(__file__).parents[1] / "data" / "gpu" / "waits.c"
COMPILER = shutil.which("gcc") or shutil.which("cc")

WAITS = """
import ctypes
driver = ctypes.CDLL({library!r})
def read_loss():
    return driver.cuStreamSynchronize(ctypes.byref(ctypes.c_int(0)))
print("there", flush=True)
read_loss()
"""
COMPUTES = """
import ctypes
driver = ctypes.CDLL({library!r})
def compute():
    return sum(range(10**13))
print("there", flush=True)
compute()
"""
Start = Callable[[str], int]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if COMPILER is None:
        pytest.skip("needs a C compiler")
    path = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-O1", "-g", "-fno-omit-frame-pointer", "-Wall", "-Werror", "-o", path, SOURCE], check=True)
    return path


@pytest.fixture
def start(library: Path, tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def run(text: str) -> int:
        program = tmp_path / f"program_{len(started)}.py"
        program.write_text(text.format(library=str(library)))
        child = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
        started.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "there\n"
        return child.pid

    yield run
    for child in started:
        child.kill()
        child.wait()


def _look(pid: int, *, asked: bool = True) -> Node:
    node = collect_node(CollectOptions(pids=(pid,), samples=3, interval_s=0.4, native_at_device=asked))
    if node.doors.attach is False:
        pytest.skip("needs ptrace")
    return node


def _calls(node: Node) -> list[str]:
    (process,) = node.processes
    return [node.frames[i].function for one in process.in_c for i in node.stacks[one.calls]]


def test_a_wait_for_the_card_is_told_from_work(start: Start) -> None:
    node = _look(start(WAITS))
    assert "cuStreamSynchronize" in _calls(node)
    (one,) = build_view(Snapshot(tool_version="1", taken_time_s=time.time(), nodes=(node,)))
    assert (one.kind, one.motion) == (Kind.CUDA, Motion.UNKNOWN)
    (process,) = node.processes
    unread = replace(node, processes=(replace(process, in_c=()),))
    (one,) = build_view(Snapshot(tool_version="1", taken_time_s=time.time(), nodes=(unread,)))
    assert (one.kind, one.motion) == (Kind.CODE, Motion.BUSY), "Python's frames alone show a core in use"


def test_what_computes_in_c_is_at_work(start: Start) -> None:
    node = _look(start(COMPUTES))
    (process,) = node.processes
    assert process.in_c, "it ran at one place, and has the library of a card"
    assert "cuStreamSynchronize" not in _calls(node)
    (one,) = build_view(Snapshot(tool_version="1", taken_time_s=time.time(), nodes=(node,)))
    assert (one.kind, one.motion) == (Kind.CODE, Motion.BUSY)


def test_nobody_is_read_who_did_not_ask_or_has_no_card(start: Start) -> None:
    assert _calls(_look(start(WAITS), asked=False)) == []
    plain = start("print('there', flush=True)\nsum(range(10**13))")
    assert not uses_accelerator(plain)
    assert _calls(_look(plain)) == []


def test_only_who_was_met_running_at_one_stack_each_time() -> None:
    def sample(*threads: tuple[int, int, bool]) -> Sample:
        return Sample(at_s=0.0, threads=tuple(ThreadSample(stack=stack, tid=tid, active=active) for tid, stack, active in threads))

    looks = [sample((1, 5, True), (2, 6, True), (3, 7, False)), sample((1, 5, True), (2, 8, True), (3, 7, False))]
    assert run_at_one_place(looks) == {1: 5}
    assert run_at_one_place(looks[:1]) == {}
