"""Who holds the other end of a Unix socket or a pipe, and bytes that move although the stack stands: on real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from integration.programs import until_at_rest

from ray_rl_debug.collect.node import collect_node
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Report, State
from ray_rl_debug.model.snapshot import Node, Process, Snapshot

pytestmark = pytest.mark.integration

UNIX_SERVER = """
import socket, sys, time
server = socket.socket(socket.AF_UNIX); server.bind(sys.argv[1]); server.listen()
print("ready", flush=True)
connection, _ = server.accept()
time.sleep(600)
"""
UNIX_CLIENT = """
import socket, sys
client = socket.socket(socket.AF_UNIX); client.connect(sys.argv[1]); client.send(b"score this")
print("ready", flush=True)
client.recv(1)
"""
FIFO_WRITER = """
import os, sys, time
pipe = os.open(sys.argv[1], os.O_RDWR)
print("ready", flush=True)
os.close(pipe) if len(sys.argv) > 2 else time.sleep(600)
"""
FIFO_READER = """
import os, sys
pipe = os.open(sys.argv[1], os.O_RDONLY)
print("ready", flush=True)
os.read(pipe, 1)
"""
DRIPPING_SERVER = """
import socket, time
server = socket.create_server(("127.0.0.1", 0)); print(server.getsockname()[1], flush=True)
connection, _ = server.accept()
while True:
    connection.send(b"t"); time.sleep(0.05)
"""
PATIENT_CLIENT = """
import socket, sys
client = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); print("ready", flush=True)
while client.recv(64): pass
"""


@pytest.fixture
def start() -> Iterator[object]:
    with ExitStack() as stack:

        def run(code: str, *arguments: object) -> tuple[int, str]:
            child = subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
            stack.callback(child.stdout.close)  # type: ignore[union-attr]
            stack.callback(child.wait, 10)
            stack.callback(child.kill)
            assert child.stdout is not None
            return child.pid, child.stdout.readline().strip()

        yield run


def look(*pids: int, interval_s: float = 0.4) -> Node:
    return collect_node(CollectOptions(pids=pids, samples=3, interval_s=interval_s, logs=False))


def report_on(node: Node) -> Report:
    return diagnose(Snapshot(tool_version="test", taken_time_s=node.started_time_s, nodes=(node,)))


def of(node: Node, pid: int) -> Process:
    return next(p for p in node.processes if p.pid == pid)


def accused(report: Report) -> set[int | None]:
    return {w.pid for f in report.findings for w in f.who}


def test_a_unix_socket_leads_to_its_silent_server(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "s"
    server, _ = start(UNIX_SERVER, path)
    client, _ = start(UNIX_CLIENT, path)
    until_at_rest(server, client)
    node = look(server, client)
    assert [s.remote for s in of(node, client).sockets or () if s.family == "unix"] == [str(path)]
    report = report_on(node)
    assert (report.verdict.state, accused(report)) == (State.HANG, {server, client}), report.verdict
    assert [(link.waiter.pid, link.why, link.target.pid) for link in report.links] == [(client, "socket", server)]


def test_a_reader_of_a_pipe_waits_for_the_only_writer(start, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "f"
    os.mkfifo(path)
    writer, _ = start(FIFO_WRITER, path)
    reader, _ = start(FIFO_READER, path)
    until_at_rest(writer, reader)
    report = report_on(look(writer, reader))
    assert [(link.waiter.pid, link.why, link.target.pid) for link in report.links] == [(reader, "pipe", writer)]
    assert reader in accused(report)


def test_an_answer_that_drips_in_is_no_hang(start) -> None:  # type: ignore[no-untyped-def]
    server, port = start(DRIPPING_SERVER)
    client, _ = start(PATIENT_CLIENT, port)
    node = look(server, client)
    connection = next(s for s in of(node, client).sockets or () if s.remote == f"127.0.0.1:{port}")
    assert connection.bytes_received and connection.quiet_s is not None and connection.quiet_s < node.window_s
    report = report_on(node)
    assert report.verdict.state is not State.HANG and not report.findings, report.verdict


def test_silence_of_a_connection_is_in_the_evidence(start) -> None:  # type: ignore[no-untyped-def]
    silent = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True); c = s.accept(); time.sleep(600)"
    server, port = start(silent)
    client, _ = start(PATIENT_CLIENT, port)
    until_at_rest(server, client)
    report = report_on(look(server, client, interval_s=0.8))
    assert report.verdict.state is State.HANG
    assert any("nothing came in for" in e.text for f in report.findings for e in f.evidence)
