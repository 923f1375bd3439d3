"""NCCL's RAS socket of a job, found by who listens there; a listener that does not belong to the job is not asked."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from ras_answers import answer, rank

from ray_rl_debug.collect.live_counters import read_live_counters
from ray_rl_debug.collect.nccl_ras import PORT

pytestmark = pytest.mark.integration

SERVER = """
import socket, sys
try:
    server = socket.create_server(("127.0.0.1", {port}))
except OSError:
    sys.exit(9)
print("listens", flush=True)
while True:
    client, _ = server.accept()
    lines = client.makefile("rb")
    for line in lines:
        word = line.split()[0]
        if word == b"CLIENT":
            client.sendall(b"SERVER PROTOCOL 2\\n")
        elif word == b"VERBOSE":
            client.sendall({answer!r})
            break
        else:
            client.sendall(b"OK\\n")
    lines.close()
    client.shutdown(socket.SHUT_RDWR)
    client.close()
"""


@pytest.fixture
def server() -> Iterator[subprocess.Popen[str]]:
    text = SERVER.format(port=PORT, answer=answer([rank(r, {"AllReduce": 7}) for r in range(2)]))
    child = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        if not child.stdout.readline():
            pytest.skip("something else listens at the port of RAS")
        yield child
    finally:
        child.kill()
        child.wait(10)
        child.stdout.close()


def test_a_rank_that_listens_is_asked_twice(server: subprocess.Popen[str]) -> None:
    found = read_live_counters({server.pid: {"python"}}, 1.5, threading.Event())
    assert found.gaps == ()
    assert found.polls is not None
    assert [[r.counts for c in poll for r in c.ranks] for poll in found.polls] == [[{"AllReduce": 7}, {"AllReduce": 7}]] * 2


def test_somebody_elses_listener_is_left_alone(server: subprocess.Popen[str]) -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert read_live_counters({other.pid: {"python"}}, 0.0, threading.Event()).polls is None
    finally:
        other.kill()
        other.communicate()
