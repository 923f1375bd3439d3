"""The kernel has readers of terminals sleep where readers of sockets do: what the descriptor is decides."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.model.snapshot import OpenFile

ASKS = "ask@app/train.py:7 main@app/train.py:20"


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/dev/pts/3", Kind.FILE), ("/dev/ptmx", Kind.FILE), ("/dev/null", Kind.SOCKET), (None, Kind.SOCKET)],
    ids=["a terminal", "the other side of one", "no terminal", "a socket"],
)
def test_a_read_of_a_terminal_is_no_wait_at_a_socket(path: str | None, kind: Kind) -> None:
    stacks = Stacks()
    one = process(stacks, 100, "python train.py", ASKS, wchan="wait_woken", syscall=0, arg0=0)
    one = replace(one, files=(OpenFile(fd=0, path=path, kind="device"),) if path else ())
    (seen,) = build_view(snapshot(stacks.node([one])))
    assert seen.kind is kind
    assert ("socket" in seen.does()) is (kind is Kind.SOCKET)
