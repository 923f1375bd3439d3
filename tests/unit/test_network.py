"""Bytes of the network interfaces: loopback left out, nothing guessed; and their track in the timeline."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from scenes import IDLE, Stacks, process, snapshot

from ray_rl_debug.collect.network import NetworkBytes, read_network
from ray_rl_debug.timeline.sources.snapshots import _node_counters

HEAD = "Inter-|   Receive                |  Transmit\n face |bytes    packets errs drop|bytes    packets errs drop\n"
ROW = "{}: {} 1 0 0 0 0 0 0 {} 1 0 0 0 0 0 0\n"


def table(folder: Path, *rows: tuple[str, int, int]) -> Path:
    (folder / "net").mkdir(exist_ok=True)
    (folder / "net" / "dev").write_text(HEAD + "".join(ROW.format(*row) for row in rows))
    return folder


def test_loopback_is_left_out(tmp_path: Path) -> None:
    assert read_network(table(tmp_path, ("    lo", 900, 900), ("  eth0", 5, 7), ("ib0", 10, 20))) == NetworkBytes(received=15, sent=27)


def test_what_is_not_there_is_unknown(tmp_path: Path) -> None:
    assert read_network(tmp_path) == NetworkBytes()
    assert NetworkBytes(received=5, sent=5).since(NetworkBytes()) == NetworkBytes()
    assert NetworkBytes(received=5, sent=9).since(NetworkBytes(received=6, sent=4)) == NetworkBytes(received=None, sent=5)


def test_this_machine_has_counters() -> None:
    assert read_network().received is not None


@pytest.mark.parametrize(
    ("moved", "tracks"), [((4 << 20, None), {"network received": 2.0}), ((0, 1 << 20), {"network received": 0.0, "network sent": 0.5})]
)
def test_rates_in_the_timeline(moved: tuple[int, int | None], tracks: dict[str, float]) -> None:
    stacks = Stacks()
    node = stacks.node([process(stacks, 100, "ray::Trainer.step", IDLE)], network_received_bytes=moved[0], network_sent_bytes=moved[1])
    found = {b.track.path[-1]: b.items[0].value for b in _node_counters(snapshot(replace(node, window_s=2.0)))}
    assert {k: v for k, v in found.items() if k.startswith("network")} == tracks
