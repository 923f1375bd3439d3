"""How many descriptors a process holds: counted for a real process, at its limit, below it and above it."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from ray_rl_debug.collect import descriptors
from ray_rl_debug.collect.descriptors import Held, look_at_full, read_descriptors
from ray_rl_debug.collect.sockets import SocketReader
from ray_rl_debug.model.snapshot import MAX_SOCKETS, Descriptors

LIMIT = 40
OPENS = """
import os, resource, sys
os.closerange(3, 1 << 10)
above = [os.dup2(0, 60)] if "above" in sys.argv else []
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 50))
held = []
try:
    while "one" not in sys.argv or len(held) < 36:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
print(flush=True)
for line in sys.stdin:
    os.close(held.pop())
    held.append(os.open("/dev/zero", os.O_RDONLY))
    print(flush=True)
"""


@contextmanager
def holder(*words: str) -> Iterator[Popen[bytes]]:
    """A process with a limit of 40 that has opened files up to it, and opens another one for each line."""
    with Popen([sys.executable, "-c", OPENS, *words], stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def renew(process: Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
    process.stdout.readline()


def read(pid: int, before: Held | None = None) -> Descriptors:
    found = read_descriptors(pid, before, SocketReader())
    assert found is not None
    return found


def test_a_process_at_its_limit_has_none_free() -> None:
    with holder() as process:
        found = read(process.pid)
        assert (found.held, found.limit, found.hard_limit, found.free) == (LIMIT, LIMIT, 50, 0)
        assert found.files + found.pipes + found.sockets + found.others == LIMIT
        assert found.files >= LIMIT - 3
        assert found.renewed is None  # the first look is missing


def test_one_free_number_is_enough_to_open_something() -> None:
    with holder("one") as process:
        assert read(process.pid).free == 1
        assert look_at_full(process.pid) is None


def test_what_lies_above_a_limit_takes_no_number_below_it() -> None:
    with holder("above") as process:
        found = read(process.pid)
        assert (found.held, found.limit, found.free) == (LIMIT + 1, LIMIT, 0)
    with holder("above", "one") as process:
        found = read(process.pid)
        assert (found.held, found.free) == (LIMIT, 1)  # as many as the limit, and yet room for one
        assert look_at_full(process.pid) is None


def test_what_was_closed_and_opened_meanwhile_is_counted() -> None:
    with holder() as process:
        before = look_at_full(process.pid)
        assert before is not None
        assert read(process.pid, before).renewed == 0
        renew(process)
        assert read(process.pid, before).renewed == 1


def test_connections_whose_client_has_gone_are_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ends = [socket.create_connection(listening.getsockname()) for _ in range(3)]
        accepted = [listening.accept()[0] for _ in ends]
        before = read(os.getpid())
        for end in ends[:2]:
            end.close()
        accepted[1].recv(1)  # the news of the end has come
        after = read(os.getpid())
        for one in (*ends, *accepted):
            one.close()
    assert before.half_closed is not None
    assert after.half_closed is not None
    assert after.half_closed - before.half_closed == 2
    assert before.sockets - after.sockets == 2


def test_of_many_sockets_those_of_gone_clients_are_left_out_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray_rl_debug.collect.sockets.MAX_SOCKETS", 4)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ends = [socket.create_connection(listening.getsockname()) for _ in range(6)]
        accepted = [listening.accept()[0] for _ in ends]
        for end in ends[:5]:
            end.close()
        accepted[4].recv(1)
        fds = {s.fd for s in SocketReader().read(os.getpid()) or ()}
        wanted = {listening.fileno(), ends[5].fileno(), accepted[5].fileno()}
        for one in (*ends, *accepted):
            one.close()
    assert len(fds) == 4
    assert wanted <= fds
    assert MAX_SOCKETS > 4


def test_a_process_whose_descriptors_are_hidden_is_not_measured(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "limits").write_text("Max open files            1024                 524288               files     \n")
    assert read_descriptors(7, None, SocketReader(tmp_path), tmp_path) is None
    assert look_at_full(7, tmp_path) is None


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ("Max open files            1024                 524288               files     \n", (1024, 524288, 1023)),
        ("Max open files            unlimited            unlimited            files     \n", (None, None, None)),
        ("", (None, None, None)),
    ],
    ids=["a limit", "none", "not read"],
)
def test_the_limit_is_the_soft_one(tmp_path: Path, limits: str, told: tuple[int | None, int | None, int | None]) -> None:
    (tmp_path / "7" / "fd").mkdir(parents=True)
    (tmp_path / "7" / "fd" / "0").symlink_to("/dev/null")
    (tmp_path / "7" / "limits").write_text(limits)
    found = read_descriptors(7, None, SocketReader(tmp_path), tmp_path)
    assert found is not None
    assert (found.limit, found.hard_limit, found.free) == told
    assert (found.held, found.files, found.half_closed) == (1, 1, None)


def test_of_a_process_that_holds_more_than_can_be_looked_at_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may hold a million of them: to look at each would keep the node busy."""
    with holder() as process:
        assert look_at_full(process.pid) is not None
        monkeypatch.setattr(descriptors, "MAX_HELD", 39)
        assert look_at_full(process.pid) is None
        assert read_descriptors(process.pid, None, SocketReader()) is None
