"""What the companion saw leave is told to the look that comes after."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from ray_rl_debug.model.snapshot import EndedProcess, Node, Process, Snapshot
from ray_rl_debug.watch import signals
from ray_rl_debug.watch.beats import Census
from ray_rl_debug.watch.departed import KEPT_S, Departed
from ray_rl_debug.watch.signals import Known, NodeReading, SignReader, first_look

SERVER, CORE, OTHER = 10, 11, 12


def reading(*pids: int) -> NodeReading:
    known = {
        SERVER: Known(pid=SERVER, born=1, kind="ray-worker", ppid=1, title="ray::vLLMHttpServer", job_id="01000000"),
        CORE: Known(pid=CORE, born=2, kind="child", ppid=SERVER, title="VLLM::EngineCore"),
        OTHER: Known(pid=OTHER, born=3, kind="child", ppid=99, title="python"),
    }
    return NodeReading(span_s=1.0, signs=(), known=tuple(known[p] for p in pids))


def snapshot(*pids: int) -> Snapshot:
    return Snapshot(
        taken_time_s=0.0,
        nodes=(
            Node(name="n1", started_time_s=0.0, window_s=1.0, processes=tuple(Process(pid=p, title="", kind="ray-worker", state="S") for p in pids)),
        ),
    )


def test_who_has_left_is_told_while_its_parent_lives() -> None:
    census, departed = Census(), Departed()
    for at_s, pids in ((0.0, (SERVER, CORE, OTHER)), (2.0, (SERVER,))):
        census.beats({"n1": reading(*pids)}, at_s, ["01000000"])
        departed.note(census.gone, at_s)
    told = departed.told_in(snapshot(SERVER), 3.0)
    assert told.nodes[0].ended == (EndedProcess(pid=CORE, ppid=SERVER, title="VLLM::EngineCore", kind="child"),)
    assert departed.told_in(snapshot(SERVER, CORE), 3.0).nodes[0].ended == (), "its number is in use again"
    assert departed.told_in(snapshot(SERVER), 3.0 + KEPT_S).nodes[0].ended == ()


def test_a_title_that_a_child_gave_itself_is_known() -> None:
    with subprocess.Popen(["bash", "-c", "read; exec -a VLLM::EngineCore sleep 60"], stdin=subprocess.PIPE) as child:
        try:
            reader = SignReader()
            born = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19])
            reader.watch([first_look(child.pid, born, "child", 1, ("bash",))])
            assert reader.read().signs[0].title is None
            assert child.stdin is not None
            child.stdin.write(b"\n")
            child.stdin.flush()
            until = time.monotonic() + 20
            while (title := reader.read().signs[0].title) is None and time.monotonic() < until:
                time.sleep(0.02)
            assert title == "VLLM::EngineCore"
        finally:
            child.kill()


def test_a_title_that_came_too_late_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node without a free core, or a lock that somebody held for a moment: the process is not left alone for ever."""
    go_on, came = threading.Event(), threading.Event()
    read = signals._Open.read

    def read_late(one: signals._Open, name: str, size: int) -> bytes:
        if name == "cmdline":
            go_on.wait(60)
            came.set()
            return b"ray::Trainer.update\0"
        return read(one, name, size)

    monkeypatch.setattr(signals._Open, "read", read_late)
    monkeypatch.setattr(signals, "TITLES_S", 0.05)
    reader = SignReader()
    born = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    reader.watch([first_look(os.getpid(), born, "ray-worker", 1, ("python",))])
    assert reader.read().signs[0].title is None
    assert reader.read().signs[0].title is None, "it is not asked a second time before it has answered"
    go_on.set()
    assert came.wait(60)
    until = time.monotonic() + 20
    while (title := reader.read().signs[0].title) is None and time.monotonic() < until:
        time.sleep(0.02)
    assert title == "ray::Trainer.update"
