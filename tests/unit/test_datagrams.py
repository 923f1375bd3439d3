"""UDP sockets: who has one, and who waits for whom where a datagram was lost."""

from __future__ import annotations

import os
import socket

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.collect.sockets import SocketReader
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import State
from ray_rl_debug.model.snapshot import Socket

READ, RECV, SLEEP = 0, 45, 230
ASKS = "_recv@multiprocessing/connection.py:395 recv@multiprocessing/connection.py:250 main@/job/m.py:49"


def test_udp_sockets_are_read() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connected:
        bound.bind(("127.0.0.1", 0))
        connected.connect(bound.getsockname())
        rows = {s.fd: s for s in SocketReader().read(os.getpid()) or ()}
        one, other = rows[bound.fileno()], rows[connected.fileno()]
        assert (one.family, one.state, one.remote) == ("udp", "UNCONNECTED", None)
        assert (other.family, other.state, other.remote) == ("udp", "ESTABLISHED", one.local)


@pytest.mark.parametrize(
    ("local", "wchan", "syscall", "is_hang"),
    [
        ("127.0.0.1:4711", "unix_stream_read_generic", READ, True),
        ("0.0.0.0:4711", "unix_stream_read_generic", READ, False),  # anybody may send there, from any machine
        ("127.0.0.1:4711", "hrtimer_nanosleep", SLEEP, False),
    ],
)
def test_a_lost_datagram(local: str, wchan: str, syscall: int, is_hang: bool) -> None:
    """A trainer tells its rollouts by datagrams, and waits for the answer of one that never got its own. The others wait for the next news."""
    stacks = Stacks()
    pair = Socket(family="unix", state="ESTABLISHED", local="", remote="", inode=1, peer_inode=2, fd=7)
    tells = Socket(family="udp", state="UNCONNECTED", local="0.0.0.0:1000", inode=9, fd=9)
    main = process(
        stacks,
        10,
        "python m.py",
        ASKS if syscall == READ else "work@/job/m.py:48",
        kind="named",
        ppid=1,
        wchan=wchan,
        syscall=syscall,
        arg0=7,
        sockets=[pair, tells],
    )
    rollouts = []
    for pid in (20, 30):
        news = Socket(family="udp", state="UNCONNECTED", local=local.replace("4711", str(pid)), inode=pid, fd=5)
        sockets = [news, replace(pair, inode=2, peer_inode=1, fd=3)] if pid == 20 else [news]
        at = {"wchan": "__skb_wait_for_more_packets", "syscall": RECV, "arg0": 5}
        rollouts.append(process(stacks, pid, "python r.py", "play@/job/r.py:23", kind="child", ppid=10, sockets=sockets, **at))  # type: ignore[arg-type]
    report = diagnose(snapshot(stacks.node([main, *rollouts])))
    assert (report.verdict.state is State.HANG) is is_hang
    assert not is_hang or {w.pid for w in report.findings[0].who} == {10, 20}
