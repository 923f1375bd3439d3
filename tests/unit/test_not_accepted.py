"""Clients of a Unix socket whom nobody accepts: who listens there, and whether it will ever accept them."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.collect.sockets import SocketReader
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import State
from ray_rl_debug.model.snapshot import Socket

RECV, SLEEP = 45, 230
START = "run@threading.py:982 _bootstrap_inner@threading.py:1045 _bootstrap@threading.py:1002"


def test_whoever_waits_in_a_queue_is_told_where(tmp_path: Path) -> None:
    path = f"/tmp/rrd{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as client:
        try:
            listening.bind(path)
            listening.listen(1)
            client.connect(path)
            rows = {s.fd: s for s in SocketReader().read(os.getpid()) or ()}
            port, end = rows[listening.fileno()], rows[client.fileno()]
            assert (end.queued_at, end.remote) == (port.inode, path) and port.rx_queue_bytes == 1
            with listening.accept()[0]:
                rows = {s.fd: s for s in SocketReader().read(os.getpid()) or ()}
                assert rows[client.fileno()].queued_at is None and rows[listening.fileno()].rx_queue_bytes == 0
        finally:
            os.unlink(path)


@pytest.mark.parametrize(
    ("threads", "goes_round", "slices", "is_hang"),
    [
        ((), True, 10, True),
        ((("accept", f"accept@/job/b.py:28 {START}"),), True, 10, False),  # this one has another client, and comes back
        ((), False, 10, False),  # it handles another client step by step
        ((), True, 6, False),  # one pause, all the time
    ],
)
def test_a_server_whose_thread_that_accepts_has_died(threads: tuple[tuple[str, str], ...], goes_round: bool, slices: int, is_hang: bool) -> None:
    stacks = Stacks()
    port = Socket(family="unix", state="LISTEN", local="/run/b", inode=5, fd=3, rx_queue_bytes=1)
    end = Socket(family="unix", state="ESTABLISHED", local="", remote="/run/b", inode=6, queued_at=5, fd=3)
    main = process(stacks, 10, "python m.py", "main@/job/m.py:71", kind="named", ppid=1, wchan="do_wait", syscall=61, arg0=20)
    at = {"kind": "child", "ppid": 10}
    serves = {"wchan": "hrtimer_nanosleep", "syscall": SLEEP, "sockets": [port], "extra_threads": threads}
    server = process(stacks, 20, "python b.py", "serve@/job/b.py:41", **serves, **at)  # type: ignore[arg-type]
    kernel = [replace(t, wchan="hrtimer_nanosleep", run_slices=slices, wakes_in_s=0.3) for t in server.threads]
    client = process(stacks, 30, "python a.py", "send@/job/a.py:49", wchan="unix_stream_read_generic", syscall=RECV, arg0=3, sockets=[end], **at)  # type: ignore[arg-type]
    node = stacks.node([main, replace(server, threads=tuple(kernel)), client])
    frames = tuple(replace(f, calls=("sleep",), goes_round=goes_round) if f.function == "serve" else f for f in node.frames)
    report = diagnose(snapshot(replace(node, frames=frames)))
    assert (report.verdict.state is State.HANG) is is_hang
    assert not is_hang or [w.pid for w in report.findings[0].who] == [20]
