"""Folders of a companion: looks that others have put something into, and what must not be left."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from faults.wire_peers import is_served, order_for, server, wait_for

import ray_rl_debug
from ray_rl_debug.watch import spawn
from ray_rl_debug.watch.history import History
from ray_rl_debug.watch.seal import invite
from ray_rl_debug.watch.watcher import WatcherOrder

OURS = ("snapshot.json.gz", "report.json", "report.txt", "report.html", "run.pftrace", "tasks.json.gz", "timeline.json", ".report.json.x8_a1b2c")


def looks(folder: Path, count: int) -> list[Path]:
    made = [folder / f"2026-11-21T03-12-{number:02}Z" for number in range(count)]
    for one in made:
        one.mkdir(parents=True)
        for name in OURS:
            (one / name).write_text("x")
    return made


@pytest.mark.parametrize("what", ["notes.txt", "checkpoint/model.pt", "report.json/inside"])
def test_notes_beside_evidence_stay(tmp_path: Path, what: str) -> None:
    """Somebody has put notes, or a checkpoint, into the folder of an old look, and the companion makes room.
    Our own files go, what is not ours stays, and folders that hold only ours go as a whole."""
    first, second, newest = looks(tmp_path, 3)
    note = first / what
    if note.parent.is_file():
        note.parent.unlink()
    note.parent.mkdir(exist_ok=True, parents=True)
    note.write_text("mine")
    History(tmp_path).prune(keep=1, max_bytes=1 << 30)
    assert note.read_text() == "mine"
    assert sorted(p.name for p in first.iterdir()) == [Path(what).parts[0]]
    assert not second.exists() and len(list(newest.iterdir())) == len(OURS)


def test_a_link_in_the_place_of_a_look_is_left_alone(tmp_path: Path) -> None:
    """A link to somebody's folder stands where a look of ours would be, and inside a look.
    Nothing behind either is removed."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "report.json").write_text("theirs")
    first, *_ = looks(tmp_path / "out", 3)
    (tmp_path / "out" / "2026-11-20T03-12-00Z").symlink_to(data)
    (first / "report.html").unlink()
    (first / "report.html").symlink_to(data / "report.json")
    History(tmp_path / "out").prune(keep=1, max_bytes=1 << 30)
    assert (data / "report.json").read_text() == "theirs"
    assert not first.exists()


def shipped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As inside an agent of node n1 to which our code was shipped."""
    code = folder / "runtime_resources" / "ray_rl_debug"
    shutil.copytree(Path(ray_rl_debug.__file__).parent, code, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(ray_rl_debug, "__file__", str(code / "__init__.py"))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    here = SimpleNamespace(get_node_id=lambda: "n1")
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(get_runtime_context=lambda: here))


def copies(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.glob("rayrl-debug-watcher-*"))


@pytest.mark.parametrize("trouble", ["the disk is full", "no process can be started"])
def test_a_watcher_that_cannot_be_started(trouble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy of our code for a watcher cannot be written as a whole, or the watcher does not start.
    The companion is told why, and the copy is removed."""
    shipped(tmp_path, monkeypatch)
    if trouble == "no process can be started":
        monkeypatch.setattr(spawn, "start", lambda order, paths: 1 / 0)
    else:
        monkeypatch.setattr(shutil, "copytree", lambda *a, **k: os.write(-1, b""))
    order = WatcherOrder(host="127.0.0.1", port=1, invitation=invite("ab" * 16, "n1"))
    assert spawn.spawn(msgspec.msgpack.encode(order))
    assert copies(tmp_path) == []


def test_a_watcher_that_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watcher with a copy of our code gets SIGKILL, as when memory runs out; another one lives.
    The next watcher of the node removes the copy of the dead one alone, and at the end each removes its own."""
    shipped(tmp_path, monkeypatch)
    with server() as one:

        def begin() -> tuple[int, str]:
            before, known = copies(tmp_path), one.nodes.get("n1")
            assert spawn.spawn(msgspec.msgpack.encode(order_for(one, "n1"))) == b""
            wait_for(lambda: one.nodes.get("n1") not in (None, known))
            (made,) = set(copies(tmp_path)) - set(before)
            return one.nodes["n1"].pid, made

        killed, left = begin()
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: "n1" not in one.nodes)
        assert copies(tmp_path) == [left]
        _, second = begin()
        assert copies(tmp_path) == [second]
        with server() as other:
            assert spawn.spawn(msgspec.msgpack.encode(order_for(other, "n1"))) == b""
            wait_for(lambda: "n1" in other.nodes)
            assert len(copies(tmp_path)) == 2
            assert second in copies(tmp_path)
            wait_for(lambda: is_served(one, "n1"))  # what it says first is the end of the one before
    wait_for(lambda: not copies(tmp_path))
