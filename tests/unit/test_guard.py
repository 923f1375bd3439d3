"""A collector that fails is one gap of its node, and the others go on."""

from __future__ import annotations

from ray_rl_debug.collect.guard import Guard
from ray_rl_debug.model import gaps


def explode() -> int:
    raise ValueError("no such field")


def test_a_collector_that_raises_is_counted_once_per_node() -> None:
    guard = Guard()
    assert guard.call("sockets", lambda: 3, 0, pid=1) == 3
    assert [guard.call("sockets", explode, -1, pid=pid) for pid in (1, 2, 3)] == [-1, -1, -1]
    assert guard.call("GPUs", explode, None) is None
    found = guard.gaps("node7")
    assert [(g.id, g.where, g.what, g.reason) for g in found] == [
        (gaps.COLLECTOR_FAILED, "node7", "sockets of 3 processes", "ValueError: no such field"),
        (gaps.COLLECTOR_FAILED, "node7", "GPUs", "ValueError: no such field"),
    ]


def test_one_process_is_named() -> None:
    guard = Guard()
    guard.call("open files", explode, None, pid=8)
    assert [(g.where, g.what) for g in guard.gaps("n")] == [("n/8", "open files")]
