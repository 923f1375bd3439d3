"""Who may connect to the companion's port without being a watcher of its own."""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import socket
import struct
import subprocess
import sys
import time

import msgspec
import pytest
from faults.wire_peers import HOST, is_alive, is_closed, is_served, order_for, server, wait_for, watcher

from ray_rl_debug.watch.peers import HELLO_S, STRANGERS
from ray_rl_debug.watch.seal import ANSWER_BYTES, KNOCK_BYTES, MAGIC, knock

pytestmark = pytest.mark.integration

GARBAGE = (
    b"",
    b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    b"\xff" * 100,
    b"\0" * KNOCK_BYTES,
    MAGIC + b"\xc3\xa9" * 100,
    b"\x16\x03\x01" + secrets.token_bytes(200),
    # the first message of an earlier version, with a token that is not ASCII: it ended the thread that hears all watchers
    (lambda body: struct.pack("<I", len(body)) + body)(
        msgspec.msgpack.encode({"type": "Hello", "token": "caf\u00e9", "node_id": "n", "pid": 1, "has_pyspy": True})
    ),
)


def test_garbage() -> None:
    """Strangers send garbage: HTTP, TLS, zeros, a token that is not ASCII, and go away in the middle of a word.

    The watchers that are there are served as before, and new ones come in.
    """
    with server() as one:
        watcher(one, "there")
        for data in (*GARBAGE, *(secrets.token_bytes(n) for n in (1, KNOCK_BYTES - 1, KNOCK_BYTES, 5000))):
            with socket.create_connection((HOST, one.port)) as stranger:
                with contextlib.suppress(OSError):
                    stranger.sendall(data)
                    if len(data) >= KNOCK_BYTES:
                        assert is_closed(stranger, 2.0), data
        watcher(one, "late")
        assert set(one.nodes) == {"there", "late"}
        assert is_served(one, "there")
        assert is_served(one, "late")


def test_silent_peers() -> None:
    """Three hundred peers connect and say nothing, for ever.

    They get few descriptors, no processor time and five seconds; watchers come in beside them.
    """
    with server() as one, contextlib.ExitStack() as stack:
        watcher(one, "there")
        before = len(os.listdir("/proc/self/fd"))
        strangers = [stack.enter_context(socket.create_connection((HOST, one.port))) for _ in range(300)]
        wait_for(lambda: one.waiting_strangers == STRANGERS)
        assert len(os.listdir("/proc/self/fd")) <= before + len(strangers) + STRANGERS + 1
        used, began = time.process_time(), time.monotonic()
        watcher(one, "late")
        assert is_served(one, "there")
        wait_for(lambda: one.waiting_strangers == 0, HELLO_S + 3)
        assert time.process_time() - used < 0.2 * (time.monotonic() - began) + 0.3
        assert all(is_closed(s, 1.0) for s in strangers)
        assert is_served(one, "late")


FLOOD = """
import socket, sys
held = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(40)]
print("connected", flush=True)
sys.stdin.read()
"""


def test_descriptors_used_up() -> None:
    """The companion has no descriptor left for one more connection, and peers keep coming.

    It waits without using a core, serves the watchers it has, and takes new ones as soon as there is room.
    """
    with server() as one:
        watcher(one, "there")
        late = order_for(one, "late")
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with subprocess.Popen([sys.executable, "-c", FLOOD, str(one.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as flood:
            assert flood.stdin is not None and flood.stdout is not None
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(int(n) for n in os.listdir("/proc/self/fd")) + 3, hard))
            try:
                assert flood.stdout.readline() == b"connected\n"
                used, began = time.process_time(), time.monotonic()
                for _ in range(20):
                    assert is_served(one, "there")
                wait_for(lambda: time.monotonic() - began > 1.0)
                assert time.process_time() - used < 0.3, "it asks for connections again and again"
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                flood.stdin.close()
        from ray_rl_debug.watch.spawn import own_code, start

        start(late, own_code()[1])
        wait_for(lambda: "late" in one.nodes)
        assert is_served(one, "late")


@pytest.mark.parametrize("knows", ["nothing", "the number of an invitation"])
def test_flood_before_proof(knows: str) -> None:
    """A peer that has proven nothing sends without end, or announces a message of a gigabyte.

    It is cut off after some kilobytes, and nothing of it is kept.
    """
    with server() as one:
        invitation = one.invite("n1")
        with socket.create_connection((HOST, one.port)) as stranger:
            stranger.settimeout(5.0)
            if knows != "nothing":
                stranger.sendall(knock(invitation, bytes(32)))
                assert len(stranger.recv(ANSWER_BYTES, socket.MSG_WAITALL)) == ANSWER_BYTES
                stranger.sendall(struct.pack("<I", 1 << 30))
            sent = 0
            with pytest.raises(OSError, match=r"reset|pipe|abort"):  # noqa: PT012 whichever send hears of it
                while sent < 256 << 20:
                    sent += stranger.send(b"\xff" * 65536)
            assert sent < 32 << 20, "what the kernel holds, and no more"
        assert one.nodes == {}
        assert one.waiting_strangers == 0
        watcher(one, "n1")


CROWD = """
import socket, sys
while True:
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1]))).send(b"rrdw1")
    except OSError:
        pass
"""


def test_crowd_of_knockers_does_not_keep_a_watcher_out() -> None:
    """Connections come as fast as a neighbour can make them while a watcher wants in.

    The watcher, whose invitation only the companion and it know, is heard.
    """
    with server() as one:
        argv = [sys.executable, "-c", CROWD, str(one.port)]
        with subprocess.Popen(argv) as child:
            try:
                wait_for(lambda: one.waiting_strangers > 0)
                for n in range(3):
                    assert is_alive(watcher(one, f"n{n}"))
            finally:
                child.kill()
        assert all(is_served(one, f"n{n}") for n in range(3))
