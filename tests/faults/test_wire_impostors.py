"""Who pretends to be the companion or a watcher, records what they say, says it again, or changes it on the way."""

from __future__ import annotations

import hashlib
import lzma
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest
from faults.wire_peers import HOST, Proxy, answer_to, impostor, is_alive, is_closed, is_served, order_for, server, wait_for, watcher

from ray_rl_debug.watch.end_driver import end_driver
from ray_rl_debug.watch.seal import ANSWER_BYTES, KNOCK_BYTES, NONCE_BYTES, Opener, Sealer, WireError, check_answer, derive, invite, knock
from ray_rl_debug.watch.server import WatcherServer
from ray_rl_debug.watch.spawn import own_code, start
from ray_rl_debug.watch.watcher import Watcher, WatcherOrder
from ray_rl_debug.watch.wire import Hello, Installed, Ping, Pong, PySpy, encode


def harmful(mark: Path) -> bytes:
    """What an impostor would have run in the place of py-spy."""
    return lzma.compress(f"#!/bin/sh\ntouch {mark}\n".encode())


def served(order: WatcherOrder) -> list[BaseException | None]:
    """What the end of a watcher's service was; it runs in a thread of this process."""
    ends: list[BaseException | None] = []

    def run() -> None:
        one = Watcher(order, connect_s=1.2)
        try:
            one.serve()
            ends.append(None)
        except (OSError, WireError) as e:
            ends.append(e)
        one.close()

    threading.Thread(target=run, daemon=True).start()
    return ends


def hello() -> bytes:
    return encode(Hello(pid=1, has_pyspy=True))


def test_impostor_at_the_companions_port(tmp_path: Path) -> None:
    """Somebody else listens where the companion should be, and orders the watcher to run a program.

    The watcher runs nothing, says nothing that helps, and ends.
    """
    invitation = invite(secrets.token_hex(16), "n1")
    heard = bytearray()

    def pretend(connection: socket.socket) -> None:
        heard.extend(connection.recv(KNOCK_BYTES, socket.MSG_WAITALL))
        keys = (secrets.token_bytes(32), secrets.token_bytes(32))
        connection.sendall(keys[0] + keys[1] + Sealer(keys[0]).seal(encode(PySpy(packed=harmful(tmp_path / "run")))))
        heard.extend(connection.recv(1 << 16))

    with impostor(pretend) as port:
        digest = hashlib.sha256(lzma.decompress(harmful(tmp_path / "run"))).hexdigest()
        ends = served(WatcherOrder(host=HOST, port=port, invitation=invitation, pyspy_sha256=digest))
        wait_for(lambda: ends, 20.0)
    assert isinstance(ends[0], WireError)
    assert bytes.fromhex(invitation.key) not in heard
    assert invitation.key.encode() not in heard
    assert len(heard) % KNOCK_BYTES == 0, "nothing but knocks"
    assert not (tmp_path / "run").exists()


def test_recorded_words_of_a_watcher() -> None:
    """All that a watcher ever said is recorded and said again on other connections, whole, in parts and twice.

    The node's watcher stays the one it is, and is served.
    """
    with server() as one, Proxy(one.port) as proxy:
        pid = watcher(one, "n1", port=proxy.port)
        assert is_served(one, "n1")
        said = bytes(proxy.recorded["watcher"])
        assert len(said) > KNOCK_BYTES + 36
        for data in (said, said[: KNOCK_BYTES + 60], said + said, said[KNOCK_BYTES:]):
            with socket.create_connection((HOST, one.port)) as replayed:
                replayed.sendall(data)
                assert is_closed(replayed)
        assert {n: h.pid for n, h in one.nodes.items()} == {"n1": pid}
        assert is_served(one, "n1")


def test_recorded_words_of_the_companion(tmp_path: Path) -> None:
    """An impostor repeats to a new watcher, word for word, what the companion said to an earlier one with the same invitation.

    The new watcher takes no order from it.
    """
    program = b"#!/bin/sh\nexit 0\n"
    with server() as one, Proxy(one.port) as proxy:
        order = order_for(one, "n1", port=proxy.port, pyspy_sha256=hashlib.sha256(program).hexdigest())
        start(order, own_code()[1])
        wait_for(lambda: "n1" in one.nodes)
        assert answer_to(one, PySpy(packed=lzma.compress(program)), "n1", Installed) == Installed(done=True)
        said = bytes(proxy.recorded["companion"])

    def repeat(connection: socket.socket) -> None:
        connection.sendall(said)
        while connection.recv(1 << 16):
            pass  # until the watcher hangs up: an end from here, with words unread, would look like a broken line

    with impostor(repeat) as port:
        ends = served(msgspec.structs.replace(order, port=port))
        wait_for(lambda: ends, 20.0)
    assert isinstance(ends[0], WireError)


@pytest.mark.parametrize("whose", ["watcher", "companion"])
def test_a_changed_byte(whose: str) -> None:
    """Somebody on the way changes one byte of a message.

    The connection ends at once; the next watcher of the node takes its place.
    """
    armed = threading.Event()

    def change(who: str, data: bytes) -> bytes:
        return bytes([*data[:-1], data[-1] ^ 1]) if who == whose and armed.is_set() else data

    with server() as one, Proxy(one.port, change) as proxy:
        pid = watcher(one, "n1", port=proxy.port)
        assert is_served(one, "n1")
        armed.set()
        assert answer_to(one, Ping(number=1), "n1", Pong) is None
        wait_for(lambda: not is_alive(pid))
        assert "n1" not in one.nodes
        assert is_alive(watcher(one, "n1"))


def sit_in(one: WatcherServer, node: str) -> tuple[socket.socket, Sealer, Opener]:
    """A connection that is past the handshake, as a node that was taken over could have it."""
    invitation, nonce = one.invite(node), secrets.token_bytes(NONCE_BYTES)
    connection = socket.create_connection((HOST, one.port))
    connection.settimeout(10.0)
    connection.sendall(knock(invitation, nonce))
    theirs = check_answer(invitation, nonce, connection.recv(ANSWER_BYTES, socket.MSG_WAITALL))
    keys = derive(invitation, nonce, theirs)
    return connection, Sealer(keys.answers), Opener(keys.orders, 1 << 20)


def test_an_invitation_is_good_once() -> None:
    """A second peer comes with an invitation that was used.

    It is turned away; of two invitations of one node the later watcher takes the place of the earlier.
    """
    with server() as one:
        order = order_for(one, "n1")
        start(order, own_code()[1])
        wait_for(lambda: "n1" in one.nodes)
        first = one.nodes["n1"].pid
        ends = served(order)
        wait_for(lambda: ends, 20.0)
        assert isinstance(ends[0], OSError)
        assert one.nodes["n1"].pid == first
        second, sealer, _ = sit_in(one, "n1")
        with second:
            second.sendall(sealer.seal(hello()))
            wait_for(lambda: one.nodes["n1"].pid == 1)
            wait_for(lambda: not is_alive(first))


@pytest.mark.parametrize(
    "how", ["answers nobody asked for", "a huge answer", "a second introduction", "another message first", "bytes that are no message"]
)
def test_a_watcher_that_was_taken_over(how: str) -> None:
    """A node turns against the companion: it floods it, or speaks out of turn, with the right seal.

    It is put out at once and told as gone; the others are served.
    """
    with server() as one:
        watcher(one, "good")
        bad, sealer, _ = sit_in(one, "bad")
        with bad:
            if how != "another message first":
                bad.sendall(sealer.seal(hello()))
                wait_for(lambda: "bad" in one.nodes)
            pong = encode(Pong(number=1, time_s=0.0))
            data = {
                "answers nobody asked for": b"".join(sealer.seal(pong) for _ in range(1000)),
                "a huge answer": b"\xff\xff\xff\x7f",
                "a second introduction": sealer.seal(hello()),
                "another message first": sealer.seal(pong),
                "bytes that are no message": sealer.seal(b"\x81\xa2\xff\xfe"),
            }[how]
            try:
                bad.sendall(data)
            except OSError:
                pass  # put out before it had said all
            assert is_closed(bad)
        wait_for(lambda: "bad" not in one.nodes)
        assert is_served(one, "good")


def test_pyspy_of_another_digest(tmp_path: Path) -> None:
    """The companion itself, or who took it over, sends another program than was announced, or one that unpacks to gigabytes.

    It is not run, and the watcher goes on.
    """
    bomb = lzma.compress(bytes(80 << 20), preset=0)
    with server() as one:
        watcher(one, "n1", pyspy_sha256=hashlib.sha256(b"another").hexdigest())
        for packed in (harmful(tmp_path / "run"), b"not packed at all", bomb):
            assert answer_to(one, PySpy(packed=packed), "n1", Installed) == Installed(done=False)
        assert is_served(one, "n1")
    assert not (tmp_path / "run").exists()


@pytest.mark.integration
def test_frozen_watcher_does_not_hold_the_companion_up() -> None:
    """A watcher is stopped while it is sent more than its socket holds.

    Orders to it return at once, the others are served, and it is given up after some seconds.
    """
    with server() as one:
        frozen, _ = watcher(one, "frozen"), watcher(one, "good")
        os.kill(frozen, signal.SIGSTOP)
        try:
            began = time.monotonic()
            for _ in range(8):
                one.send("frozen", PySpy(packed=bytes(4 << 20)))
            assert time.monotonic() - began < 2.0
            assert is_served(one, "good")
            wait_for(lambda: "frozen" not in one.nodes, 20.0)
            assert is_served(one, "good")
        finally:
            os.kill(frozen, signal.SIGCONT)
        wait_for(lambda: not is_alive(frozen))


def test_a_pid_that_was_used_again() -> None:
    """The pid of the driver that is to end belongs to another process by now, or the process is none of Ray's.

    Nobody gets a signal.
    """
    with subprocess.Popen([sys.executable, "-c", "print('up', flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdin is not None
        assert child.stdout.readline() == b"up\n"
        ticks = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(") ")[2].split()[19])
        assert not end_driver(child.pid, ticks)  # not Ray's
        assert not end_driver(child.pid, ticks - 1)
        assert child.poll() is None
        child.stdin.close()
    with_core_worker = "import ray._raylet; print('up', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", with_core_worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdin is not None
        assert child.stdout.readline() == b"up\n"
        ticks = int(Path(f"/proc/{child.pid}/stat").read_text().rpartition(") ")[2].split()[19])
        assert not end_driver(child.pid, ticks - 1)
        assert child.poll() is None
        assert end_driver(child.pid, ticks)
        assert child.wait(10) == -signal.SIGTERM
        child.stdin.close()
